"""Deep Q-learning on a cart that balances a pole; the environment is written here."""

import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim
from command import main

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))


class CartPole:
    """Barto, Sutton and Anderson's cart and pole; a state is (x, v, angle, angular velocity)."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return list(self.state)

    def step(self, action):
        x, v, angle, w = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        push = (force + 0.05 * w * w * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        pull = push - 0.05 * turn * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * w, w + 0.02 * turn]
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return list(self.state), 1.0, fell, self.steps >= 200


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(4, 128)
        self.layer2 = nn.Linear(128, 128)
        self.layer3 = nn.Linear(128, 2)

    def forward(self, x):
        x = nn.functional.relu(self.layer1(x))
        x = nn.functional.relu(self.layer2(x))
        return self.layer3(x)


class Agent:
    def __init__(self, rng, gamma=0.99, tau=0.01):
        self.rng, self.gamma, self.tau = rng, gamma, tau
        self.policy, self.target = DQN(), DQN()
        self.target.load_state_dict(self.policy.state_dict())
        self.optimizer = optim.AdamW(self.policy.parameters(), lr=1e-3, amsgrad=True)
        self.memory: deque[Transition] = deque([], maxlen=10000)

    def act(self, state, epsilon):
        if self.rng.random() < epsilon:
            return self.rng.randrange(2)
        with torch.no_grad():
            return self.policy(torch.tensor(state, dtype=torch.float32).unsqueeze(0)).max(1).indices.item()

    def learn(self, batch_size=64):
        batch = Transition(*zip(*self.rng.sample(self.memory, batch_size)))
        state = torch.tensor(batch.state)
        action = torch.tensor(batch.action).unsqueeze(1)
        reward, done = torch.tensor(batch.reward), torch.tensor(batch.done)
        values = self.policy(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            ahead = self.target(torch.tensor(batch.next_state)).max(1).values
            ahead[done] = 0.0
        loss = nn.SmoothL1Loss()(values, reward + self.gamma * ahead)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.policy.parameters(), 100)
        self.optimizer.step()
        learned = self.policy.state_dict()
        kept = self.target.state_dict()
        for key in learned:
            kept[key] = learned[key] * self.tau + kept[key] * (1 - self.tau)
        self.target.load_state_dict(kept)
        return loss.item()


def train(steps):
    rng = random.Random(torch.initial_seed())
    environment, agent = CartPole(rng), Agent(rng)
    losses: list[float] = []
    lengths: list[int] = []
    state = None
    while len(losses) < steps:
        state = environment.reset() if state is None else state
        action = agent.act(state, epsilon=0.05 + 0.85 * math.exp(-len(losses) / 500))
        following, reward, fell, over = environment.step(action)
        agent.memory.append(Transition(state, action, following, reward, fell))
        if fell or over:
            lengths.append(environment.steps)
        state = None if fell or over else following
        if len(agent.memory) >= 128:
            losses.append(agent.learn())
    return losses, {"mean length of the last ten episodes": sum(lengths[-10:]) / len(lengths[-10:])}


if __name__ == "__main__":
    main(train, steps=4000)

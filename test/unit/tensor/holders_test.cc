// The tensors over a storage follow when its memory moves, whichever were made and went before.
#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

Tensor Counting(int64_t n) {
  Tensor t = EmptyTensor({n}, DType::kI64, Device{});
  for (int64_t i = 0; i < n; ++i) t.data_as<int64_t>()[i] = i;
  return t;
}
// A view of one element, which is its place.
Tensor At(const Tensor& base, int64_t i, bool detached) { return MakeView(base, {1}, {1}, i * 8, detached); }
int64_t ValueOf(const Tensor& view) { return *view.data_as<int64_t>(); }

TEST_CASE("all tensors over a storage follow when it grows", "[tensor]") {
  constexpr int64_t kCount = 200;
  std::mt19937 random(7);
  for (const bool detached : {false, true}) {
    Tensor base = Counting(kCount);
    std::vector<std::pair<int64_t, Tensor>> views;
    for (int round = 0; round < 20; ++round) {
      for (int64_t i = 0; i < 40; ++i) {
        const int64_t place = static_cast<int64_t>(random() % kCount);
        views.emplace_back(place, At(base, place, detached));
      }
      std::shuffle(views.begin(), views.end(), random);
      views.resize(views.size() / 2);
      if (round == 10)
        base = MakeView(base, {kCount}, {1}, 0, true);  // the first tensor goes, if no view holds it
      const void* const before = base.data();
      base.impl()->storage->Resize(base.impl()->storage->nbytes() * 2);
      CHECK(base.data() != before);
      CHECK(ValueOf(At(base, 3, true)) == 3);
      for (const auto& [place, view] : views) CHECK(ValueOf(view) == place);
    }
  }
}

TEST_CASE("tensors move to another storage and follow that", "[tensor]") {
  const Tensor one = Counting(100), two = Counting(100);
  const Tensor view = At(one, 5, true);
  view.impl()->MoveTo(two.impl()->storage);
  view.impl()->dl.data = static_cast<char*>(two.data()) + 7 * 8;
  one.impl()->storage->Resize(5000);
  CHECK(ValueOf(view) == 7);
  two.data_as<int64_t>()[7] = 70;
  two.impl()->storage->Resize(5000);
  CHECK(ValueOf(view) == 70);
  CHECK(ValueOf(At(one, 5, true)) == 5);
  CHECK(one.impl()->storage->use_count() == 1);
  CHECK(two.impl()->storage->use_count() == 2);
}

TEST_CASE("threads make and drop views of one storage", "[tensor]") {
  const Tensor base = Counting(1000);
  std::vector<std::vector<std::pair<int64_t, Tensor>>> kept(4);
  std::vector<std::thread> threads;
  for (auto& mine : kept) {
    threads.emplace_back([&base, &mine] {
      std::mt19937 random(static_cast<unsigned>(reinterpret_cast<uintptr_t>(&mine)));
      for (int i = 0; i < 20000; ++i) {
        const int64_t place = static_cast<int64_t>(random() % 1000);
        mine.emplace_back(place, At(base, place, i % 2 == 0));
        if (mine.size() > 50) mine.erase(mine.begin() + static_cast<int64_t>(random() % 50));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  base.impl()->storage->Resize(100000);
  for (const auto& mine : kept)
    for (const auto& [place, view] : mine) CHECK(ValueOf(view) == place);
}

}  // namespace
}  // namespace mica

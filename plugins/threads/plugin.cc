// threads: the table of the engine whose ranks are threads of one process.
#include <mica/plugin.h>

#include "plugins/threads/hub.h"

using mica::threads::Hub;
using mica::threads::Part;
using mica::threads::Slot;
using Clock = std::chrono::steady_clock;

struct MicaGroup {
  std::shared_ptr<Hub> hub;
  int32_t rank, size;
  std::chrono::nanoseconds timeout;
};

struct MicaWork {
  std::shared_ptr<Hub> hub;
  std::shared_ptr<Slot> slot;
  int32_t rank;
  Clock::time_point deadline;
};

namespace {

MicaStatus Open(MicaStr name, int32_t rank, int32_t size, int64_t timeout, MicaGroup** group,
                MicaStr* address) {
  return mica::plugin::CatchAll([&] {
    auto hub = Hub::Named(std::string(name.data, static_cast<size_t>(name.size)), rank, size);
    hub->Enter(rank);
    *group = new MicaGroup{std::move(hub), rank, size, std::chrono::nanoseconds(timeout)};
    *address = MicaStr{"", 0};
  });
}

MicaStatus Connect(MicaGroup*, const MicaStr*) { return nullptr; }

MicaStatus Start(MicaGroup* group, const MicaCollective* collective, void* held, void (*done)(void*),
                 MicaWork** work) {
  bool entered = false;  // the hub calls `done` from then on
  const MicaStatus status = mica::plugin::CatchAll([&] {
    Part part;
    part.call = *collective;
    part.held = held;
    part.done = done;
    if (collective->kind == MICA_ALL_TO_ALL) {
      part.input_splits.assign(collective->input_splits, collective->input_splits + group->size);
      part.output_splits.assign(collective->output_splits, collective->output_splits + group->size);
    }
    auto started = std::make_unique<MicaWork>();
    started->hub = group->hub;
    started->rank = group->rank;
    started->deadline = Clock::now() + group->timeout;
    entered = true;
    started->slot = group->hub->Start(group->rank, std::move(part));
    *work = started.release();
  });
  if (status && !entered) done(held);
  return status;
}

MicaStatus Wait(MicaWork* work, int64_t timeout, int32_t* finished) {
  return mica::plugin::CatchAll([&] {
    *finished =
        work->hub->Wait(work->slot.get(), work->rank, std::chrono::nanoseconds(timeout), work->deadline);
    if (*finished && work->slot->code) throw mica::plugin::Error(work->slot->code, work->slot->error);
  });
}

void Release(MicaWork* work) { delete work; }

void Close(MicaGroup* group) {
  group->hub->Leave(group->rank);
  delete group;
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  static const MicaCollectives table = {
      {sizeof(MicaCollectives), 1, 0}, &Open, &Connect, &Start, &Wait, &Release, &Close};
  mica::plugin::Registrar(registrar, "cpu")
      .Extension("threads" MICA_COLLECTIVES_EXTENSION_SUFFIX, &table.table);
}

}  // namespace

MICA_PLUGIN("threads", "Mica", "0.1", "", "", "extension:threads.collectives", Init)

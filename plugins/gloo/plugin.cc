// gloo: the table of the engine whose ranks are processes that Gloo connects over TCP.
#include <mica/plugin.h>

#include "plugins/gloo/group.h"

using mica::gloo_engine::Group;
using mica::gloo_engine::Work;

struct MicaGroup {
  std::shared_ptr<Group> group;
};

struct MicaWork {
  std::shared_ptr<Group> group;
  std::shared_ptr<Work> work;
};

namespace {

std::string Text(MicaStr s) { return {s.data, static_cast<size_t>(s.size)}; }

MicaStatus Open(MicaStr name, int32_t rank, int32_t size, int64_t timeout, MicaGroup** group,
                MicaStr* address) {
  return mica::plugin::CatchAll([&] {
    auto made = std::make_shared<Group>(Text(name), rank, size, std::chrono::nanoseconds(timeout));
    *group = new MicaGroup{std::move(made)};
    *address = mica::plugin::Str((*group)->group->address());
  });
}

MicaStatus Connect(MicaGroup* group, const MicaStr* addresses) {
  return mica::plugin::CatchAll([&] {
    std::vector<std::string> all;
    for (int32_t i = 0; i < group->group->size(); ++i) all.push_back(Text(addresses[i]));
    group->group->Connect(all);
  });
}

MicaStatus Start(MicaGroup* group, const MicaCollective* collective, void* held, void (*done)(void*),
                 MicaWork** work) {
  bool entered = false;  // the group calls `done` from then on
  const MicaStatus status = mica::plugin::CatchAll([&] {
    auto started = std::make_shared<Work>();
    started->call = *collective;
    started->held = held;
    started->done = done;
    if (collective->kind == MICA_ALL_TO_ALL) {
      const int32_t size = group->group->size();
      started->input_splits.assign(collective->input_splits, collective->input_splits + size);
      started->output_splits.assign(collective->output_splits, collective->output_splits + size);
    }
    auto made = std::make_unique<MicaWork>(MicaWork{group->group, started});
    group->group->Start(started);
    entered = true;
    *work = made.release();
  });
  if (status && !entered) done(held);
  return status;
}

MicaStatus Wait(MicaWork* work, int64_t timeout, int32_t* finished) {
  return mica::plugin::CatchAll([&] {
    *finished = work->group->Wait(*work->work, std::chrono::nanoseconds(timeout));
    if (*finished && work->work->code) throw mica::plugin::Error(work->work->code, work->work->error);
  });
}

void Release(MicaWork* work) { delete work; }

void Close(MicaGroup* group) {
  // A forked process has no threads to wait for, nor connections to end: it keeps the memory.
  if (group->group->forked()) return;
  group->group->Close();
  delete group;
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  static const MicaCollectives table = {
      {sizeof(MicaCollectives), 1, 0}, &Open, &Connect, &Start, &Wait, &Release, &Close};
  mica::plugin::Registrar(registrar, "cpu").Extension("gloo" MICA_COLLECTIVES_EXTENSION_SUFFIX, &table.table);
}

}  // namespace

MICA_PLUGIN("gloo", "Mica", "0.1", "", "", "extension:gloo.collectives", Init)

// The loader's list of candidates and its lock. Internal to plugins.cc and
// discovery.cc.
//
// The mutex is recursive: a plugin's start may ask for another plugin. Nobody who
// waits for it, or holds it, holds the binding's interpreter lock: a plugin's start
// may need that in any thread. Warnings raised while the mutex is held wait until it
// is let go, because the binding's handler takes that lock.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/plugins.h"

namespace mica {

struct Entry {
  PluginInfo info;
  bool described = false;        // info.manifest is a description's copy
  bool starting = false;         // its init is running
  std::shared_ptr<Scope> scope;  // set once it has started
  uint64_t disabled_at = 0;      // Loader::disables when it was disabled last
};

struct Loader {
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Entry>> entries;  // in the order of finding
  std::vector<std::string> folders;
  PluginFinder finder = nullptr;
  bool searched = false;  // MICA_PLUGINS and the folders
  bool asked_finder = false;
  int depth = 0;    // how often the holder holds the mutex
  size_t told = 0;  // plugins found and backends named when the hook was last called
  void (*backends_hook)() = nullptr;
  uint64_t disables = 0;
  // What plugins may still point to: never freed, as they are never unmapped.
  std::vector<std::shared_ptr<const void>> kept;
};
Loader& GetLoader();

// A plugin's init runs in a thread of its own, which has the loader's mutex through the
// thread that waits for it, until that one gives up waiting.
struct LentLock {
  std::recursive_mutex mutex;
  bool lent = true;
};
// Of this thread, which runs a plugin's init; NULL in others.
void SetLentLock(std::shared_ptr<LentLock> lock);

// Holds the mutex; says what was to be said after letting go of it.
class LoaderLock {
 public:
  LoaderLock();
  ~LoaderLock();
  LoaderLock(const LoaderLock&) = delete;
  LoaderLock& operator=(const LoaderLock&) = delete;

 private:
  const InterpreterRelease released_;
  std::unique_lock<std::recursive_mutex> borrowed_;
};

// The candidate at `path` (one, however the path is spelled), new if need be. Its
// manifest is the description's copy when that has one, or its ELF note.
Entry& AddCandidate(Loader& l, const std::string& path, const std::string& found_by,
                    const Description* description);
// Starts it, and says in its state what became of it. `replaces`: in the place of a loaded one of its name.
absl::Status LoadEntry(Loader& l, Entry& e, bool replaces = false);
// MICA_PLUGINS and the folders, once.
void Search(Loader& l);
// Asks the finder, once; not while the mutex is held more than once.
void AskFinder(Loader& l);
// The folder lib/mica/plugins beside libmica.
std::string OwnPluginFolder();

}  // namespace mica

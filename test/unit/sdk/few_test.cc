// Lists that need no memory of their own while they are short: few.h. Each operation at both sides of the
// place where a list takes memory, with elements that count themselves.
#include <mica/few.h>

#include <numeric>
#include <string>
#include <vector>

#include "test/support/mica_test.h"

namespace mica::testing {
namespace {

// An element that knows how many are alive, and that is not moved as bytes.
struct Counted {
  static inline int alive = 0;
  explicit Counted(int value = 0)
      : text(std::to_string(value) + " of some length on the heap"), value(value) {
    ++alive;
  }
  Counted(const Counted& o) : text(o.text), value(o.value) { ++alive; }
  Counted(Counted&& o) noexcept : text(std::move(o.text)), value(o.value) { ++alive; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() { --alive; }
  friend bool operator==(const Counted& a, const Counted& b) {
    return a.text == b.text && a.value == b.value;
  }
  std::string text;
  int value;
};
using List = plugin::Few<Counted, 3>;

List Made(int size) {
  List list;
  for (int i = 0; i < size; ++i) list.push_back(Counted(i));
  return list;
}
std::vector<int> ValuesOf(const List& list) {
  std::vector<int> values;
  for (const Counted& c : list) values.push_back(c.value);
  return values;
}
std::vector<int> UpTo(int size) {
  std::vector<int> values(static_cast<size_t>(size));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST_CASE("a list grows, copies and moves at each size", "[sdk]") {
  const int before = Counted::alive;
  for (int size = 0; size <= 8; ++size) {
    INFO("size " << size);
    List list = Made(size);
    CHECK(Counted::alive == before + size);
    CHECK(ValuesOf(list) == UpTo(size));
    List copy = list;
    CHECK(copy == list);
    List moved = std::move(list);
    CHECK(moved == copy);
    CHECK(list.empty());
    list.push_back(Counted(7));
    CHECK(ValuesOf(list) == std::vector<int>{7});
    for (int other = 0; other <= 8; ++other) {
      List target = Made(other);
      target = copy;
      CHECK(target == copy);
      target = Made(other);
      CHECK(ValuesOf(target) == UpTo(other));
      target = *&target;
      CHECK(ValuesOf(target) == UpTo(other));
    }
  }
  CHECK(Counted::alive == before);
}

TEST_CASE("a list is filled with one of its own elements", "[sdk]") {
  plugin::Few<std::string, 2> list{std::string(100, 'a'), std::string(100, 'b')};
  list.resize(40, list[1]);
  CHECK(list[39] == std::string(100, 'b'));
  list.resize(2, list[0]);
  list.resize(3, list[0]);
  CHECK(list[2] == std::string(100, 'a'));
}

TEST_CASE("a list is resized and emptied", "[sdk]") {
  const int before = Counted::alive;
  for (int from = 0; from <= 7; ++from) {
    for (int to = 0; to <= 7; ++to) {
      INFO("from " << from << " to " << to);
      List list = Made(from);
      list.resize(static_cast<size_t>(to), Counted(9));
      std::vector<int> expected = UpTo(from);
      expected.resize(static_cast<size_t>(to), 9);
      CHECK(ValuesOf(list) == expected);
      CHECK(Counted::alive == before + to);
      list.clear();
      CHECK(Counted::alive == before);
    }
  }
  CHECK(plugin::Few<int64_t, 2>(5) == plugin::Few<int64_t, 2>{0, 0, 0, 0, 0});
  CHECK(plugin::Few<int64_t, 2>(3, 4) == plugin::Few<int64_t, 2>{4, 4, 4});
}

TEST_CASE("elements are inserted at any place", "[sdk]") {
  const std::vector<Counted> more = {Counted(10), Counted(11)};
  for (int size = 0; size <= 6; ++size) {
    for (int at = 0; at <= size; ++at) {
      INFO("size " << size << " at " << at);
      List list = Made(size);
      const Counted* const first = list.insert(list.begin() + at, more.begin(), more.end());
      CHECK(first == list.begin() + at);
      std::vector<int> expected = UpTo(size);
      expected.insert(expected.begin() + at, {10, 11});
      CHECK(ValuesOf(list) == expected);
      list.insert(list.begin() + at, list.front());  // an element of its own
      expected.insert(expected.begin() + at, expected.front());
      CHECK(ValuesOf(list) == expected);
    }
  }
}

}  // namespace
}  // namespace mica::testing

#include "executor/comm/store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "tests/support/errors.h"
#include "tests/support/processes.h"

namespace fluid::store_test {
namespace {

using comm::Duration;
using comm::Store;
using testing::Ranks;

constexpr Duration kLong{15000};  // nothing here should take as long
constexpr Duration kShort{600};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Store, SharesKeysAndNumbers) {
  Ranks ranks(3, [](const World& world) {
    Store store(world, kLong);
    store.set("from" + std::to_string(world.rank),
              std::string(1, '\0') + std::to_string(world.rank));
    std::string all;
    for (int i = 0; i < 3; ++i) all += store.get("from" + std::to_string(i)).substr(1);
    store.add("count", 5);
    store.add("arrived", 1);
    while (store.add("arrived", 0) < 3) std::this_thread::sleep_for(Duration(1));
    return all + " " + std::to_string(store.add("count", 0));
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "012 15");
}

TEST(Store, KeepsWhatIsProposedFirst) {
  Ranks ranks(3, [](const World& world) {
    Store store(world, kLong);
    while (store.add("proposed", 0) != (world.rank + 2) % 3) {  // rank 1, 2, 0
      std::this_thread::sleep_for(Duration(1));
    }
    const std::string first = store.propose("key", "of " + std::to_string(world.rank));
    store.set("key", "a value");
    store.add("proposed", 1);
    while (store.add("proposed", 0) < 3) std::this_thread::sleep_for(Duration(1));
    return first + ", " + store.propose("key", "again") + ", " +
           store.propose("of " + std::to_string(world.rank), "own");
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "of 1, of 1, own");
}

TEST(Store, TellsWhatWasProposedInItsOrder) {
  Ranks ranks(2, [](const World& world) {
    Store store(world, kLong);
    if (world.rank == 1) {
      store.propose("second", "b");
      store.propose("first", "a");
      store.propose("second", "c");
    }
    store.barrier(kLong);
    std::string all;
    for (int64_t i = 0; const auto found = store.proposal(i); ++i) {
      all += found->first + " " + found->second + ", ";
    }
    if (store.proposal(-1)) all += "before the first";
    store.barrier(kLong);
    if (world.rank == 0) store.propose("third", "");
    store.barrier(kLong);
    return all + store.proposal(2)->first;
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "second b, first a, third");
}

TEST(Store, CarriesLargeValues) {
  Ranks ranks(2, [](const World& world) {
    Store store(world, kLong);
    if (world.rank == 1) store.set("large", std::string(3'000'000, 'x'));
    std::string value = store.get("large");
    store.add("done", 1);
    while (store.add("done", 0) < 2) std::this_thread::sleep_for(Duration(1));
    return std::to_string(value.size());
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "3000000");
}

TEST(Store, WaitsForALateMaster) {
  Ranks ranks(2, [](const World& world) {
    if (world.rank == 0) std::this_thread::sleep_for(Duration(300));
    Store store(world, kLong);
    return std::string("met");
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "met");
}

TEST(Store, SaysThatAKeyIsNotSetInTime) {
  Ranks ranks(2, [](const World& world) {
    Store store(world, kShort);
    if (world.rank == 1) return store.get("nothing");
    std::this_thread::sleep_for(2 * kShort);
    return std::string();
  });
  expect_has(ranks.result(1), "DeviceError: no rank has set 'nothing' in the store in time: ");
}

TEST(Store, SaysThatThePortIsInUse) {
  World world = testing::loopback_world(2);
  comm::Socket other = comm::listen_at("127.0.0.1", world.port);
  expect_user_error(
      [&] { Store(world, kLong); },
      "rank 0 cannot listen on port " + std::to_string(world.port) +
          ": Address already in use: give all ranks another (MASTER_PORT or FLUID_PORT)");
}

TEST(Store, ListensOnAPortThatAnotherProcessReserved) {
  const comm::Socket reserved = comm::bind_at("127.0.0.1", 0);
  World world = testing::loopback_world(2);
  world.port = comm::port_of(reserved);
  Ranks ranks(world, 2, [](const World& each) {
    Store store(each, kLong);
    store.barrier(kLong);
    return std::string("met");
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "met");
}

TEST(Store, GivesAReservedPortToNoOtherSocket) {
  const comm::Socket reserved = comm::bind_at("127.0.0.1", 0);
  std::vector<comm::Socket> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(comm::listen_at("127.0.0.1", 0));
    EXPECT_NE(comm::port_of(others.back()), comm::port_of(reserved));
  }
}

TEST(Store, SaysThatTheMasterIsAbsent) {
  World world = testing::loopback_world(2);
  world.rank = 1;
  auto start = comm::Clock::now();
  try {
    Store(world, kShort);
    FAIL() << "there is no master";
  } catch (const DeviceError& e) {
    expect_has(e.what(), "rank 0 does not answer at 127.0.0.1, port " + std::to_string(world.port) +
                             ": Connection refused: has it been started");
  }
  EXPECT_LT(comm::Clock::now() - start, kShort + Duration(2000));
}

TEST(Store, SaysThatTheMasterHasNoAddress) {
  World world = testing::loopback_world(2);
  world.rank = 1;
  world.master_host = "no host of this name";
  expect_user_error([&] { Store(world, kShort); },
                    "the master's address 'no host of this name' names no host: ");
}

TEST(Store, NamesTheRanksThatDoNotCome) {
  Ranks ranks(testing::loopback_world(4), 2, [](const World& world) {
    Store store(world, kShort);
    return std::string("met");
  });
  for (const std::string& result : ranks.results()) {
    expect_has(result, "DeviceError: rank 2, 3 of 4 did not join within 0.6 s");
  }
}

TEST(Store, RejectsAnotherWorldSize) {
  Ranks ranks(2, [](World world) {
    world.size += world.rank;
    Store store(world, kLong);
    return std::string("met");
  });
  for (const std::string& result : ranks.results()) {
    expect_has(result,
               "UserError: rank 1 was started for a world of 3 processes, but rank 0 for one of 2: "
               "start all ranks with the same size");
  }
}

TEST(Store, IsMadeAgainByTheSameRanks) {
  Ranks ranks(3, [](const World& world) {
    std::string all;
    for (int round = 0; round < 10; ++round) {
      Store store(world, kLong);
      if (world.rank == round % 3) store.set("round", std::to_string(round));
      all += store.get("round");
    }
    return all;
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "0123456789");
}

TEST(Store, RejectsARankTwice) {
  Ranks ranks(3, [](World world) {
    world.rank = std::min(world.rank, 1);
    Store store(world, kLong);
    return std::string("met");
  });
  expect_has(ranks.result(0), "UserError: two processes have rank 1");
}

TEST(Store, RejectsARankThatIsNotThere) {
  Ranks ranks(2, [](World world) {
    world.rank *= 7;
    Store store(world, kLong);
    return std::string("met");
  });
  for (const std::string& result : ranks.results()) {
    expect_has(result, "UserError: there is no rank 7 in a world of 2");
  }
}

TEST(Store, RejectsStrangersAndGoesOn) {
  Ranks ranks(testing::loopback_world(2), 3, [](World world) {
    if (world.rank == 1) std::this_thread::sleep_for(Duration(1000));
    if (world.rank == 2) {
      comm::Socket socket =
          comm::connect_to(world.master_host, world.port, comm::Clock::now() + kLong);
      EXPECT_EQ(::send(socket.fd(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
      world.rank = 1;
      world.restart = 1;
    }
    Store store(world, kLong);
    return std::string("met");
  });
  EXPECT_EQ(ranks.result(0), "met");
  EXPECT_EQ(ranks.result(1), "met");
  std::string stranger = ranks.result(2);
  expect_has(stranger, "UserError: the store at port ");
  expect_has(stranger,
             " is that of another job or restart ('test/0', this process is of 'test/1'): choose "
             "another port");
}

TEST(Store, PacksAndUnpacksMessages) {
  comm::Message sent{comm::Message::Kind::set, -7, "key", std::string("a\0b", 3)};
  std::string bytes = comm::pack(sent) + comm::pack({});
  std::string buffer;
  for (size_t i = 0; i + 1 < comm::pack(sent).size(); ++i) {
    buffer += bytes[i];
    ASSERT_FALSE(comm::unpack(buffer)) << "after " << i << " bytes";
  }
  buffer = bytes;
  auto got = comm::unpack(buffer);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, sent.kind);
  EXPECT_EQ(got->number, -7);
  EXPECT_EQ(got->text, "key");
  EXPECT_EQ(got->value, sent.value);
  EXPECT_TRUE(comm::unpack(buffer));
  EXPECT_EQ(buffer, "");
  for (std::string damaged : {std::string(4, '\0'), std::string(4, '\xff')}) {
    EXPECT_THROW(comm::unpack(damaged), DeviceError);
  }
  std::string kind = bytes, length = bytes;
  kind[4] = '\x7f';
  length[16] = '\x7f';
  EXPECT_THROW(comm::unpack(kind), DeviceError);
  EXPECT_THROW(comm::unpack(length), DeviceError);
}

}  // namespace
}  // namespace fluid::store_test

// Until when connections' first waiting Produces are to be answered: the earliest first, and one entry a connection.
//
// Producers give their requests one timeout, so that a connection's deadlines rise: an entry stays as it is while requests are
// answered and others become the first, and only says that nothing is due earlier. It is set right when its time comes. So a
// request costs nothing here, and a turn costs what is due.
#pragma once

#include <set>
#include <utility>

#include "channel.h"

namespace fastquorum::node {

class ProduceDeadlines {
   public:
    // When the next one is due, or earlier; never: none waits.
    Micros earliest_us() const noexcept { return entries_.empty() ? never : entries_.begin()->first; }

    bool is_due(Micros at_us) const noexcept { return !entries_.empty() && entries_.begin()->first <= at_us; }

    Connection first() const noexcept { return entries_.begin()->second; }

    // See to it that nothing of the connection is overlooked. True: something is due earlier than all that was known.
    bool note(Channel &channel) {
        if (channel.produces.empty()) return false;
        const Micros deadline = channel.produces.front().deadline_us;
        if (channel.produces_due_us != never && channel.produces_due_us <= deadline) return false;
        forget(channel);
        const auto entry = entries_.emplace(deadline, channel.number).first;
        channel.produces_due_us = deadline;
        return entry == entries_.begin();  // a statement of its own: in one with the insertion, either may come first
    }

    void forget(Channel &channel) noexcept {
        if (channel.produces_due_us == never) return;
        entries_.erase({channel.produces_due_us, channel.number});
        channel.produces_due_us = never;
    }

   private:
    std::set<std::pair<Micros, Connection>> entries_;
};

}  // namespace fastquorum::node

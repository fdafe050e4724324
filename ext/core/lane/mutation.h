// Breaches of the lane's rules, planted by tests in builds that have them (the checked one); nothing of this exists in others.
#pragma once

namespace fastquorum::lane {

enum class Mutation : int {
    none,
    leads_without_a_leader_change,
    hands_up_without_freezing,
    freezes_without_writing_what_gathered,
    sends_while_frozen,
    goes_on_after_close,
    answers_a_parked_fetch_twice,
    samples_the_end_after_the_sync,  // in the shell's log
    ignores_the_generation,
    forgets_a_failed_sync,
    tells_the_contacts_of_the_opening,
    counts_fetches_under_way,
    confirms_before_the_epochs_start,
    leaves_parked_fetches_alone,
    counts_observers,
    counts_its_unflushed_end,
    fetches_past_what_is_synced,
};

#ifdef FASTQUORUM_LANE_MUTANTS
inline constexpr bool has_mutants = true;
inline Mutation planted = Mutation::none;
inline bool mutated(Mutation mutation) noexcept { return planted == mutation; }
inline void plant(int mutation) noexcept { planted = static_cast<Mutation>(mutation); }
#else
inline constexpr bool has_mutants = false;
constexpr bool mutated(Mutation) noexcept { return false; }
inline void plant(int) noexcept {}
#endif

}  // namespace fastquorum::lane

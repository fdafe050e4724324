// Bare etcd raft with etcd's write-ahead log: the fastest that can be built from Go's most used raft library. No snapshots, no
// state machine, no recovery, so it is a bound on etcd and no product.
//
// One goroutine owns the raft state. Everything that waits is drained into one proposal, one write, one sync and one message a
// peer; the leader ships before it syncs, a follower answers after it has synced.
//
//	usage: etcdraft ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3
package main

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"fastquorum.bench/load"
)

const (
	keepEntries = 200_000 // in memory, for a follower that lags: there are no snapshots here
	drainMax    = 4096    // proposals or messages taken in one turn
)

var errLost = errors.New("the leadership was lost")

type proposal struct {
	values [][]byte
	done   chan error
}

// waiter is an append that is done once so many values of this leader's are committed: they commit in the order of proposal.
type waiter struct {
	until uint64
	done  chan error
}

type node struct {
	raw       *raft.RawNode
	storage   *raft.MemoryStorage
	log       *wal.WAL
	peers     *peers
	proposals chan proposal
	leads     atomic.Bool
	waiting   []waiter
	term      uint64 // of this leader; 0 on a follower
	proposed  uint64 // values, in this term
	committed uint64 // of them
	compacted uint64
}

func (n *node) Leads() bool { return n.leads.Load() }

func (n *node) Append(values [][]byte) error {
	done := make(chan error, 1)
	n.proposals <- proposal{values, done}
	return <-done
}

func main() {
	if len(os.Args) != 6 {
		load.Fatal("usage", errors.New("etcdraft ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3"))
	}
	id, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		load.Fatal("ID", err)
	}
	log, err := wal.Create(zap.NewNop(), os.Args[2]+"/wal", nil)
	if err != nil {
		load.Fatal("write-ahead log", err)
	}
	raft.SetLogger(&raft.DefaultLogger{Logger: silent()})
	storage := raft.NewMemoryStorage()
	raw, err := raft.NewRawNode(&raft.Config{
		ID:              id,
		ElectionTick:    10,
		HeartbeatTick:   1,
		Storage:         storage,
		MaxSizePerMsg:   1 << 20,
		MaxInflightMsgs: 512,
		CheckQuorum:     true,
		PreVote:         true,
	})
	if err != nil {
		load.Fatal("raft", err)
	}
	if err := raw.Bootstrap([]raft.Peer{{ID: 1}, {ID: 2}, {ID: 3}}); err != nil {
		load.Fatal("bootstrap", err)
	}
	n := &node{raw: raw, storage: storage, log: log, proposals: make(chan proposal, drainMax)}
	n.peers = connect(id, os.Args[3:])
	go n.run()
	load.Serve(n)
}

func (n *node) run() {
	ticks := time.NewTicker(100 * time.Millisecond)
	for {
		select {
		case <-ticks.C:
			n.raw.Tick()
		case m := <-n.peers.received:
			n.step(m)
		case p := <-n.proposals:
			n.propose(p)
		}
		n.drain()
		for n.raw.HasReady() {
			n.ready(n.raw.Ready())
		}
	}
}

func (n *node) drain() {
	for range drainMax {
		select {
		case m := <-n.peers.received:
			n.step(m)
		default:
			for range drainMax {
				select {
				case p := <-n.proposals:
					n.propose(p)
				default:
					return
				}
			}
			return
		}
	}
}

func (n *node) step(m *pb.Message) {
	if err := n.raw.Step(m); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		load.Fatal("a message", err)
	}
}

// propose makes entries of what several appenders want committed.
func (n *node) propose(first proposal) {
	batch := []proposal{first}
	for more := true; more && len(batch) < drainMax; {
		select {
		case p := <-n.proposals:
			batch = append(batch, p)
		default:
			more = false
		}
	}
	var entries []*pb.Entry
	for _, p := range batch {
		for _, value := range p.values {
			entries = append(entries, &pb.Entry{Data: value})
		}
	}
	self := n.raw.BasicStatus().ID
	if err := n.raw.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: &self, Entries: entries}); err != nil {
		for _, p := range batch {
			p.done <- err
		}
		return
	}
	for _, p := range batch {
		n.proposed += uint64(len(p.values))
		n.waiting = append(n.waiting, waiter{n.proposed, p.done})
	}
}

func (n *node) ready(rd raft.Ready) {
	leads := n.leads.Load()
	if rd.SoftState != nil {
		leads = rd.SoftState.RaftState == raft.StateLeader
		n.leads.Store(leads)
		if leads != (n.term != 0) {
			n.term, n.proposed, n.committed = 0, 0, 0
			n.fail(errLost)
			if leads {
				n.term = n.raw.BasicStatus().GetTerm()
			}
		}
	}
	if leads {
		n.peers.send(rd.Messages)
	}
	hard := rd.HardState
	if hard == nil {
		hard = &pb.HardState{}
	}
	if err := n.log.Save(hard, rd.Entries); err != nil {
		load.Fatal("write-ahead log", err)
	}
	if rd.HardState != nil {
		if err := n.storage.SetHardState(rd.HardState); err != nil {
			load.Fatal("hard state", err)
		}
	}
	if err := n.storage.Append(rd.Entries); err != nil {
		load.Fatal("entries", err)
	}
	if !leads {
		n.peers.send(rd.Messages)
	}
	n.apply(rd.CommittedEntries)
	n.raw.Advance(rd)
}

func (n *node) apply(entries []*pb.Entry) {
	for _, entry := range entries {
		if entry.GetType() == pb.EntryConfChange {
			var change pb.ConfChange
			if err := proto.Unmarshal(entry.GetData(), &change); err != nil {
				load.Fatal("a change of members", err)
			}
			n.raw.ApplyConfChange(&change)
		} else if entry.GetTerm() == n.term && len(entry.GetData()) > 0 {
			n.committed++
		}
	}
	if len(entries) == 0 {
		return
	}
	applied, answered := entries[len(entries)-1].GetIndex(), 0
	for answered < len(n.waiting) && n.waiting[answered].until <= n.committed {
		n.waiting[answered].done <- nil
		answered++
	}
	n.waiting = n.waiting[answered:]
	if applied > n.compacted+2*keepEntries {
		n.compacted = applied - keepEntries
		if err := n.storage.Compact(n.compacted); err != nil {
			load.Fatal("compaction", err)
		}
	}
}

func (n *node) fail(err error) {
	for _, each := range n.waiting {
		each.done <- err
	}
	n.waiting = nil
}

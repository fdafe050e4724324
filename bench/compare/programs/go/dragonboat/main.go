// dragonboat v4 with its Tan log.
//
//	usage: dragonboat ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3
//
// A batch is one entry that holds all its values.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/lni/dragonboat/v4"
	"github.com/lni/dragonboat/v4/config"
	"github.com/lni/dragonboat/v4/logger"
	"github.com/lni/dragonboat/v4/plugin/tan"
	sm "github.com/lni/dragonboat/v4/statemachine"

	"fastquorum.bench/load"
)

const shard = 1

type node struct {
	host *dragonboat.NodeHost
	self uint64
}

func (n *node) Leads() bool {
	leader, _, known, err := n.host.GetLeaderID(shard)
	return err == nil && known && leader == n.self
}

func (n *node) Append(values [][]byte) error {
	session := n.host.GetNoOPSession(shard)
	state, err := n.host.Propose(session, bytes.Join(values, nil), 20*time.Second)
	for errors.Is(err, dragonboat.ErrSystemBusy) { // its queue is full
		time.Sleep(time.Millisecond)
		state, err = n.host.Propose(session, bytes.Join(values, nil), 20*time.Second)
	}
	if err != nil {
		return err
	}
	result := <-state.ResultC()
	state.Release()
	if !result.Completed() {
		return fmt.Errorf("not committed: %+v", result)
	}
	return nil
}

// machine remembers nothing.
type machine struct{}

func (machine) Update(sm.Entry) (sm.Result, error) { return sm.Result{}, nil }

func (machine) Lookup(any) (any, error) { return nil, nil }

func (machine) SaveSnapshot(io.Writer, sm.ISnapshotFileCollection, <-chan struct{}) error {
	return errors.New("no snapshots here")
}

func (machine) RecoverFromSnapshot(io.Reader, []sm.SnapshotFile, <-chan struct{}) error {
	return errors.New("no snapshots here")
}

func (machine) Close() error { return nil }

func main() {
	if len(os.Args) != 6 {
		load.Fatal("usage", errors.New("dragonboat ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3"))
	}
	self, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		load.Fatal("ID", err)
	}
	for _, name := range []string{"raft", "rsm", "transport", "grpc", "dragonboat", "logdb", "raftpb", "config", "settings", "tan"} {
		logger.GetLogger(name).SetLevel(logger.CRITICAL)
	}
	addresses := os.Args[3:]
	host, err := dragonboat.NewNodeHost(config.NodeHostConfig{
		NodeHostDir:    os.Args[2] + "/dragonboat",
		RTTMillisecond: 100,
		RaftAddress:    addresses[self-1],
		Expert:         config.ExpertConfig{LogDBFactory: tan.Factory},
	})
	if err != nil {
		load.Fatal("node host", err)
	}
	members := map[uint64]dragonboat.Target{}
	for at, address := range addresses {
		members[uint64(at+1)] = address
	}
	create := func(uint64, uint64) sm.IStateMachine { return machine{} }
	err = host.StartReplica(members, false, create, config.Config{
		ReplicaID: self, ShardID: shard, ElectionRTT: 10, HeartbeatRTT: 1, CheckQuorum: true, PreVote: true,
	})
	if err != nil {
		load.Fatal("replica", err)
	}
	load.Serve(&node{host, self})
}

// hashicorp/raft with raft-wal: batches of up to 1,024 entries from the queue of appends to the followers and to the state machine.
//
//	usage: hashicorp ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3
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

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"fastquorum.bench/load"
)

const cachedEntries = 8192

type node struct{ raft *raft.Raft }

func (n *node) Leads() bool { return n.raft.State() == raft.Leader }

func (n *node) Append(values [][]byte) error {
	return n.raft.Apply(bytes.Join(values, nil), 20*time.Second).Error()
}

// machine remembers nothing.
type machine struct{}

func (machine) Apply(*raft.Log) any { return nil }

func (machine) ApplyBatch(logs []*raft.Log) []any { return make([]any, len(logs)) }

func (machine) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots here") }

func (machine) Restore(io.ReadCloser) error { return errors.New("no snapshots here") }

func main() {
	if len(os.Args) != 6 {
		load.Fatal("usage", errors.New("hashicorp ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3"))
	}
	self, err := strconv.Atoi(os.Args[1])
	if err != nil {
		load.Fatal("ID", err)
	}
	directory, addresses := os.Args[2]+"/wal", os.Args[3:]
	if err := os.MkdirAll(directory, 0o700); err != nil {
		load.Fatal("directory", err)
	}
	log, err := wal.Open(directory)
	if err != nil {
		load.Fatal("write-ahead log", err)
	}
	transport, err := raft.NewTCPTransport(addresses[self-1], nil, 3, 10*time.Second, io.Discard)
	if err != nil {
		load.Fatal("transport", err)
	}
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(os.Args[1])
	config.Logger = hclog.NewNullLogger()
	config.BatchApplyCh = true
	config.MaxAppendEntries = 1024
	config.SnapshotInterval, config.SnapshotThreshold = 24*time.Hour, 1<<40
	config.TrailingLogs = 1 << 40
	var members raft.Configuration
	for at, address := range addresses {
		members.Servers = append(members.Servers, raft.Server{
			ID: raft.ServerID(fmt.Sprint(at + 1)), Address: raft.ServerAddress(address),
		})
	}
	snapshots := raft.NewDiscardSnapshotStore()
	if err := raft.BootstrapCluster(config, log, log, snapshots, transport, members); err != nil {
		load.Fatal("bootstrap", err)
	}
	cached, err := raft.NewLogCache(cachedEntries, log) // followers are sent from memory
	if err != nil {
		load.Fatal("cache", err)
	}
	running, err := raft.NewRaft(config, machine{}, cached, log, snapshots, transport)
	if err != nil {
		load.Fatal("raft", err)
	}
	load.Serve(&node{running})
}

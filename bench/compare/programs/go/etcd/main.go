// etcd: one member of a cluster, in this process, with a client in the same process; or a client process over gRPC.
//
//	usage: etcd member ID DIRECTORY PEER_ADDRESS1,2,3 CLIENT_ADDRESS1,2,3
//	       etcd client ADDRESS
//
// A value is a Put; a batch is one transaction of as many Puts.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"fastquorum.bench/load"
)

const (
	keys        = 10_000 // overwritten in turn, so that the store stays small
	connections = 4
)

type node struct {
	clients []*clientv3.Client
	leads   func() bool
	next    atomic.Uint64
}

func (n *node) Leads() bool { return n.leads() }

func (n *node) Append(values [][]byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	number := n.next.Add(uint64(len(values))) - uint64(len(values))
	client := n.clients[number%uint64(len(n.clients))]
	if len(values) == 1 {
		_, err := client.Put(ctx, key(number), string(values[0]))
		return err
	}
	puts := make([]clientv3.Op, len(values))
	for at, value := range values {
		puts[at] = clientv3.OpPut(key(number+uint64(at)), string(value))
	}
	_, err := client.Txn(ctx).Then(puts...).Commit()
	return err
}

func key(number uint64) string { return fmt.Sprintf("k%07d", number%keys) }

func main() {
	switch {
	case len(os.Args) == 6 && os.Args[1] == "member":
		load.Serve(member(os.Args[2], os.Args[3], strings.Split(os.Args[4], ","), strings.Split(os.Args[5], ",")))
	case len(os.Args) == 3 && os.Args[1] == "client":
		load.Serve(client(os.Args[2]))
	default:
		load.Fatal("usage", errors.New("etcd member ID DIRECTORY PEERS CLIENTS, or etcd client ADDRESS"))
	}
}

func member(id, directory string, peers, clients []string) *node {
	self, err := strconv.Atoi(id)
	if err != nil || self < 1 || self > len(peers) || len(peers) != len(clients) {
		load.Fatal("usage", fmt.Errorf("no member %q of %v", id, peers))
	}
	config := embed.NewConfig()
	config.Name, config.Dir = "n"+id, directory+"/etcd"
	config.LogLevel, config.LogOutputs = "fatal", []string{"stderr"}
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(peers[self-1]), urls(peers[self-1])
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(clients[self-1]), urls(clients[self-1])
	var members []string
	for at, peer := range peers {
		members = append(members, fmt.Sprintf("n%d=http://%s", at+1, peer))
	}
	config.InitialCluster = strings.Join(members, ",")
	config.MaxTxnOps = 2048
	config.QuotaBackendBytes = 8 << 30
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		load.Fatal("start", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		load.Fatal("start", err)
	case <-time.After(time.Minute):
		load.Fatal("start", errors.New("not ready within a minute"))
	}
	leads := func() bool { return etcd.Server.Leader() == etcd.Server.MemberID() }
	return &node{clients: []*clientv3.Client{v3client.New(etcd.Server)}, leads: leads}
}

func urls(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }

func client(address string) *node {
	n := &node{leads: func() bool { return true }}
	for range connections {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop(), DialTimeout: 10 * time.Second})
		if err != nil {
			load.Fatal("connect", err)
		}
		n.clients = append(n.clients, client)
	}
	return n
}

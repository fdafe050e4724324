package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"net"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"fastquorum.bench/load"
)

const waitingMax = 16384 // messages to a peer; more are dropped, as raft allows

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// peers are the connections to the other members: one each way, a message is its length and its protobuf.
type peers struct {
	received chan *pb.Message
	queues   map[uint64]chan *pb.Message
}

func connect(self uint64, addresses []string) *peers {
	p := &peers{received: make(chan *pb.Message, drainMax), queues: map[uint64]chan *pb.Message{}}
	listener, err := net.Listen("tcp", addresses[self-1])
	if err != nil {
		load.Fatal("listen", err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				load.Fatal("accept", err)
			}
			go p.receive(connection)
		}
	}()
	for n, address := range addresses {
		if id := uint64(n + 1); id != self {
			p.queues[id] = make(chan *pb.Message, waitingMax)
			go deliver(address, p.queues[id])
		}
	}
	return p
}

func (p *peers) send(messages []*pb.Message) {
	for _, m := range messages {
		select {
		case p.queues[m.GetTo()] <- m:
		default:
		}
	}
}

// deliver writes what waits in one call.
func deliver(address string, queue chan *pb.Message) {
	var connection net.Conn
	var buffer []byte
	for m := range queue {
		buffer = frame(buffer[:0], m)
		for more := true; more && len(buffer) < 4<<20; {
			select {
			case m := <-queue:
				buffer = frame(buffer, m)
			default:
				more = false
			}
		}
		for connection == nil {
			var err error
			if connection, err = net.Dial("tcp", address); err != nil {
				time.Sleep(20 * time.Millisecond) // the peer has not started yet
			}
		}
		if _, err := connection.Write(buffer); err != nil {
			connection.Close()
			connection = nil
		}
	}
}

func frame(buffer []byte, m *pb.Message) []byte {
	at := len(buffer)
	buffer, err := proto.MarshalOptions{}.MarshalAppend(append(buffer, 0, 0, 0, 0), m)
	if err != nil {
		load.Fatal("a message", err)
	}
	binary.LittleEndian.PutUint32(buffer[at:], uint32(len(buffer)-at-4))
	return buffer
}

func (p *peers) receive(connection net.Conn) {
	reader := bufio.NewReaderSize(connection, 1<<18)
	var size [4]byte
	for {
		if _, err := io.ReadFull(reader, size[:]); err != nil {
			return // the peer has ended
		}
		data := make([]byte, binary.LittleEndian.Uint32(size[:]))
		if _, err := io.ReadFull(reader, data); err != nil {
			return
		}
		m := &pb.Message{}
		if err := proto.Unmarshal(data, m); err != nil {
			load.Fatal("a message", err)
		}
		p.received <- m
	}
}

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Member has a connection to every other one.
type Member struct {
	rank, size int
	listener   net.Listener
	peers      []net.Conn
	readers    []*bufio.Reader
	waiting    []map[uint32][][]byte // By peer and tag: messages that came before somebody wanted them.
}

func listen(host string, rank, size int) (*Member, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	member := &Member{rank: rank, size: size, listener: listener}
	member.peers, member.readers = make([]net.Conn, size), make([]*bufio.Reader, size)
	for range member.peers {
		member.waiting = append(member.waiting, map[uint32][][]byte{})
	}
	return member, nil
}

func (m *Member) address() string { return m.listener.Addr().String() }

// connect calls all members before this one, and is called by all after it.
func (m *Member) connect(addresses []string) error {
	defer m.listener.Close()
	for rank := 0; rank < m.rank; rank++ {
		peer, err := net.Dial("tcp", addresses[rank])
		if err != nil {
			return err
		}
		if err = binary.Write(peer, binary.LittleEndian, uint32(m.rank)); err != nil {
			return err
		}
		m.peers[rank], m.readers[rank] = peer, bufio.NewReader(peer)
	}
	for count := m.rank + 1; count < m.size; count++ {
		peer, err := m.listener.Accept()
		if err != nil {
			return err
		}
		var rank uint32
		if err = binary.Read(peer, binary.LittleEndian, &rank); err != nil {
			return err
		}
		if int(rank) >= m.size {
			return fmt.Errorf("a member of rank %d of %d has called", rank, m.size)
		}
		m.peers[rank], m.readers[rank] = peer, bufio.NewReader(peer)
	}
	return nil
}

// exchange gives every member its part, and returns what each of them gave this one.
func (m *Member) exchange(parts [][]byte) ([][]byte, error) {
	sent := make(chan error, m.size)
	for rank := range m.peers {
		go func(rank int) { sent <- m.send(rank, 0, parts[rank]) }(rank)
	}
	came := make([][]byte, m.size)
	came[m.rank] = parts[m.rank]
	for rank := range m.peers {
		if rank != m.rank {
			_, data, err := m.frame(rank)
			if err != nil {
				return nil, err
			}
			came[rank] = data
		}
	}
	for range m.peers {
		if err := <-sent; err != nil {
			return nil, err
		}
	}
	return came, nil
}

func (m *Member) send(rank int, tag uint32, data []byte) error {
	if rank == m.rank {
		return nil
	}
	head := make([]byte, 12)
	binary.LittleEndian.PutUint32(head, tag)
	binary.LittleEndian.PutUint64(head[4:], uint64(len(data)))
	_, err := m.peers[rank].Write(append(head, data...))
	return err
}

// receive returns the next message of a member with a tag. Others that come before wait.
func (m *Member) receive(rank int, tag uint32) ([]byte, error) {
	for len(m.waiting[rank][tag]) == 0 {
		came, data, err := m.frame(rank)
		if err != nil {
			return nil, err
		}
		m.waiting[rank][came] = append(m.waiting[rank][came], data)
	}
	data := m.waiting[rank][tag][0]
	m.waiting[rank][tag] = m.waiting[rank][tag][1:]
	return data, nil
}

func (m *Member) frame(rank int) (uint32, []byte, error) {
	head := make([]byte, 12)
	if _, err := io.ReadFull(m.readers[rank], head); err != nil {
		return 0, nil, err
	}
	data := make([]byte, binary.LittleEndian.Uint64(head[4:]))
	_, err := io.ReadFull(m.readers[rank], data)
	return binary.LittleEndian.Uint32(head), data, err
}

// Package rankbridge is a gang for tests in Go. The gang ends with the test, and with this process.
//
//	gang := rankbridge.Start(t, rankbridge.Fields{"size": 4})
//	sum, err := gang.Ask("call", rankbridge.Fields{"call": "all_reduce_value", "value": "$rank"})
package rankbridge

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"sync"
	"testing"
)

// Fields of a request, or of an answer.
type Fields = map[string]any

// Error is a request that failed. Ranks has, of calls, the errors by rank.
type Error struct {
	Code, Message string
	Ranks         Fields
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

type answer struct {
	ID    int
	Ok    Fields
	Error *Error
}

// Gang is driven by `rankbridge drive`.
type Gang struct {
	lock    sync.Mutex
	in      io.Writer
	count   int
	waiting map[int]chan answer
	done    chan struct{}
}

// Start opens a gang that ends with the test.
func Start(t testing.TB, options Fields) *Gang {
	driver := exec.Command("sh", "-c", `exec "${RANKBRIDGE_COMMAND:-rankbridge}" drive`)
	in, _ := driver.StdinPipe()
	out, _ := driver.StdoutPipe()
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	gang := &Gang{in: in, waiting: map[int]chan answer{}, done: make(chan struct{})}
	go gang.read(bufio.NewScanner(out))
	t.Cleanup(func() { in.Close(); <-gang.done; driver.Wait() })
	options["protocol"] = 1
	if _, err := gang.Ask("open", options); err != nil {
		t.Fatal(err)
	}
	return gang
}

// Ask asks for something, and waits for the answer. Several goroutines can ask at once.
func (g *Gang) Ask(do string, fields Fields) (Fields, error) {
	came := make(chan answer, 1)
	g.lock.Lock()
	g.count++
	request := Fields{"do": do, "id": g.count}
	g.waiting[g.count] = came
	g.lock.Unlock()
	for name, value := range fields {
		request[name] = value
	}
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	g.in.Write(append(line, '\n'))
	select {
	case it := <-came:
		if it.Error != nil {
			return nil, it.Error
		}
		return it.Ok, nil
	case <-g.done:
		return nil, &Error{Code: "UNAVAILABLE", Message: "the driver has ended"}
	}
}

func (g *Gang) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var it answer
		json.Unmarshal(lines.Bytes(), &it)
		g.lock.Lock()
		if came := g.waiting[it.ID]; came != nil {
			came <- it
		}
		delete(g.waiting, it.ID)
		g.lock.Unlock()
	}
	close(g.done)
}

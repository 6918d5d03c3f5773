package rankbridge

import (
	"errors"
	"fmt"
	"testing"
)

func TestAGangForATest(t *testing.T) {
	gang := Start(t, Fields{"size": 3, "backend": "gloo"})
	must := func(do string, fields Fields) Fields {
		t.Helper()
		ok, err := gang.Ask(do, fields)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	must("create", Fields{"name": "x", "dtype": "float32", "shape": []int{2}, "fill": "rank"})
	must("call", Fields{"call": "all_reduce", "of": "x", "as": "y"})
	got := must("get", Fields{"name": "y"})["ranks"].(Fields)["1"].(Fields)["values"]
	if fmt.Sprint(got) != "[3 3]" {
		t.Errorf("expected [3 3], got %v", got)
	}

	_, err := gang.Ask("call", Fields{"call": "all_reduce", "of": "x", "but": Fields{"1": Fields{"op": "max"}}})
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != "MISMATCH" || len(failed.Ranks) != 3 {
		t.Errorf("expected MISMATCH of three ranks, got %v", err)
	}

	lost := make(chan error)
	go func() {
		_, err := gang.Ask("call", Fields{"call": "barrier", "absent": []int{2}, "timeout_ms": 60000})
		lost <- err
	}()
	must("fault", Fields{"kill": []int{2}, "at": "waiting"})
	if !errors.As(<-lost, &failed) || failed.Code != "PEER_LOST" {
		t.Errorf("expected PEER_LOST, got %v", failed)
	}
	if got := fmt.Sprint(must("form", nil)["replaced"]); got != "[2]" {
		t.Errorf("expected [2] to be replaced, got %s", got)
	}
	must("call", Fields{"call": "barrier", "expect": Fields{"ok": true}})
}

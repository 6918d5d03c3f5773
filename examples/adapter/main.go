// An engine for `rankbridge up --backend program:./adapter`: one process for each member of a group, which answers
// lines of JSON, and moves the data over TCP connections to all others. docs/backends.md has the words.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Request is a line of the input. Bytes are base64 in JSON.
type Request struct {
	ID        int      `json:"id"`
	Do        string   `json:"do"`
	Rank      int      `json:"rank"`
	Size      int      `json:"size"`
	Host      string   `json:"host"`
	Addresses []string `json:"addresses"`
	Call      string   `json:"call"`
	Op        string   `json:"op"`
	Dtype     string   `json:"dtype"`
	Src       int      `json:"src_rank_in_group"`
	Dst       int      `json:"dst_rank_in_group"`
	Tag       uint32   `json:"tag"`
	Sizes     []int    `json:"sizes"`
	Inputs    []int    `json:"input_sizes"`
	Data      []byte   `json:"base64"`
}

type object = map[string]any

func main() {
	var member *Member
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return // The end of the input is the end of the member.
		}
		var request Request
		var ok object
		if err = json.Unmarshal(line, &request); err == nil {
			switch request.Do {
			case "open":
				member, ok, err = open(request)
			case "connect":
				ok, err = object{}, member.connect(request.Addresses)
			case "call":
				var data []byte
				data, err = member.call(request)
				ok = object{"base64": data}
			default:
				err = fmt.Errorf("there is no %q", request.Do)
			}
		}
		if err != nil {
			out.Encode(object{"id": request.ID, "error": object{"message": err.Error()}})
		} else {
			out.Encode(object{"id": request.ID, "ok": ok})
		}
	}
}

func open(request Request) (*Member, object, error) {
	member, err := listen(request.Host, request.Rank, request.Size)
	if err != nil {
		return nil, nil, err
	}
	dtypes := []string{"float32", "float64", "int8", "int32", "int64", "uint8"}
	return member, object{
		"address": member.address(),
		"operations": []string{"barrier", "broadcast", "scatter", "gather", "all_gather", "all_to_all",
			"reduce", "all_reduce", "reduce_scatter", "send", "recv"},
		"reductions": object{"sum": dtypes, "product": dtypes, "min": dtypes, "max": dtypes},
	}, nil
}

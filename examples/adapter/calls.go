package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// call does one operation; it returns the bytes that this member is given.
func (m *Member) call(it Request) ([]byte, error) {
	nothing, same := make([][]byte, m.size), make([][]byte, m.size)
	for rank := range same {
		same[rank] = it.Data
	}
	switch it.Call {
	case "barrier":
		_, err := m.exchange(nothing)
		return nil, err
	case "broadcast": // Only the source has data.
		came, err := m.exchange(same)
		return pick(came, it.Src), err
	case "scatter":
		parts := nothing
		if m.rank == it.Src {
			parts = divided(it.Data, it.Sizes)
		}
		came, err := m.exchange(parts)
		return pick(came, it.Src), err
	case "gather":
		nothing[it.Dst] = it.Data
		came, err := m.exchange(nothing)
		if m.rank != it.Dst {
			return nil, err
		}
		return bytes.Join(came, nil), err
	case "all_gather":
		came, err := m.exchange(same)
		return bytes.Join(came, nil), err
	case "all_to_all":
		came, err := m.exchange(divided(it.Data, it.Inputs))
		return bytes.Join(came, nil), err
	case "reduce":
		nothing[it.Dst] = it.Data
		came, err := m.exchange(nothing)
		if err != nil || m.rank != it.Dst {
			return nil, err
		}
		return reduced(came, it.Op, it.Dtype)
	case "all_reduce":
		came, err := m.exchange(same)
		if err != nil {
			return nil, err
		}
		return reduced(came, it.Op, it.Dtype)
	case "reduce_scatter":
		came, err := m.exchange(divided(it.Data, it.Sizes))
		if err != nil {
			return nil, err
		}
		return reduced(came, it.Op, it.Dtype)
	case "send":
		return nil, m.send(it.Dst, it.Tag, it.Data)
	case "recv":
		return m.receive(it.Src, it.Tag)
	}
	return nil, fmt.Errorf("there is no operation %q", it.Call)
}

func pick(came [][]byte, rank int) []byte {
	if came == nil {
		return nil
	}
	return came[rank]
}

func divided(data []byte, sizes []int) [][]byte {
	parts := make([][]byte, len(sizes))
	for rank, size := range sizes {
		parts[rank], data = data[:size], data[size:]
	}
	return parts
}

type number interface {
	float32 | float64 | int8 | int32 | int64 | uint8
}

func reduced(came [][]byte, op, dtype string) ([]byte, error) {
	switch dtype {
	case "float32":
		return folded[float32](came, op)
	case "float64":
		return folded[float64](came, op)
	case "int8":
		return folded[int8](came, op)
	case "uint8":
		return folded[uint8](came, op)
	case "int32":
		return folded[int32](came, op)
	case "int64":
		return folded[int64](came, op)
	}
	return nil, fmt.Errorf("no %s of %s", op, dtype)
}

func folded[T number](came [][]byte, op string) ([]byte, error) {
	size := binary.Size(T(0))
	total, given := make([]T, len(came[0])/size), make([]T, len(came[0])/size)
	for rank, data := range came {
		if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, given); err != nil {
			return nil, err
		}
		for place, it := range given {
			if rank == 0 {
				total[place] = it
			} else {
				total[place] = combined(total[place], it, op)
			}
		}
	}
	var out bytes.Buffer
	err := binary.Write(&out, binary.LittleEndian, total)
	return out.Bytes(), err
}

func combined[T number](one, other T, op string) T {
	switch {
	case op == "sum":
		return one + other
	case op == "product":
		return one * other
	case op == "min" && other < one, op == "max" && other > one:
		return other
	}
	return one
}

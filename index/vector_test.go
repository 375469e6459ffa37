package index

import (
	"strings"
	"testing"
)

// A line older than vectors is read as having an unknown dimension, and is written back unchanged.
func TestLineWithoutDimension(t *testing.T) {
	before := strings.Replace(contractLine, `,"dimension":768,"vector_id":16`, "", 1)
	e, err := ParseLine([]byte(before))
	if err != nil || e.Dimension != UnknownDimension || e.Vector() != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	if got, err := e.AppendMemory(nil); err != nil || string(got) != before {
		t.Errorf("got  %s\nwant %s, %v", got, before, err)
	}
	now, err := ParseLine([]byte(contractLine))
	if err != nil || !e.Agrees(now) || !now.Agrees(e) || e == now {
		t.Errorf("%+v and %+v, %v", e, now, err)
	}
	other := now
	other.Dimension++
	if now.Agrees(other) {
		t.Error("two dimensions agree")
	}
}

func TestVectorID(t *testing.T) {
	for _, c := range []struct {
		e    Entry
		want int64
	}{
		{Entry{Version: 8}, 0},
		{Entry{Version: 8, Dimension: UnknownDimension}, 0},
		{Entry{Version: 8, Dimension: 3}, 8},
		{Entry{Version: 8, Dimension: 3, VectorID: 5}, 5},
		{Entry{Version: 8, Deleted: true}, 0},
	} {
		if got := c.e.Vector(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.e, got, c.want)
		}
	}
}

// Lines that differ only in the vector have the same pairs, which is recognized without parsing them.
func TestSamePairsOfAnotherVector(t *testing.T) {
	for _, other := range []string{"", `,"dimension":0`, `,"dimension":3`, `,"dimension":768,"vector_id":9`} {
		if b := strings.Replace(contractLine, `,"dimension":768,"vector_id":16`, other, 1); !samePairs([]byte(contractLine), []byte(b)) {
			t.Errorf("%s", b)
		}
	}
}

package undo

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// timeline returns the history of a document in which each letter of text is a version. The commits of the versions
// whose letters are in chosen are to be undone.
//
//	A…Z  a put
//	-    a deletion, x too
//	u    upkeep
//	0…9  an undo that restores the state after that number of letters; 0: the state before all
func timeline(t *testing.T, text, chosen string) *document {
	t.Helper()
	d := &document{gone: true, cur: -1}
	begun := false
	there := []bool{false}
	for i, c := range text {
		lsn := wal.LSN(8 * (i + 1))
		e := entry{lsn: lsn, previous: d.last, created: !there[i]}
		in := strings.ContainsRune(chosen, c)
		switch {
		case c == '-' || c == 'x':
			e.deleted, e.created = true, false
		case c == 'u':
			e.cause = wal.CauseUpkeep
		case c >= '0' && c <= '9':
			n := int(c - '0')
			e.cause, e.restores, e.deleted = wal.CauseUndo, wal.LSN(8*n), !there[n]
			e.created = !there[i] && !e.deleted
		}
		there = append(there, !e.deleted)
		if !begun && !in { // before the first commit of the run
			d.base, d.gone, d.last = lsn, e.deleted, lsn
			continue
		}
		begun = true
		d.add(&e, 1, in, c == 'u')
	}
	return d
}

func TestTimelines(t *testing.T) {
	for _, c := range []struct {
		text, chosen string
		target       int // how many letters there were; -1: nothing to do
		other        int // likewise the conflicting letter, by its number from 1
	}{
		{"A", "A", 0, 0},
		{"AR", "R", 1, 0},
		{"ARR", "R", 1, 0},
		{"ARB", "R", -1, 3},
		{"ARBR", "R", 3, 3},
		{"ARu", "R", 1, 0},      // upkeep goes along
		{"AuR", "R", 2, 0},      // and stays at its state
		{"ARuB", "R", -1, 4},    //
		{"R-", "R", -1, 0},      // gone as before
		{"AR-", "R", -1, 3},     // deleted by others
		{"Ax", "x", 1, 0},       // an eviction
		{"AR1", "R", -1, 0},     // taken back before
		{"AR12", "R", 1, 0},     // and brought back
		{"AR121", "R", -1, 0},   //
		{"AR1R", "R", 1, 0},     // the run continued after the undo
		{"AR1B", "R", -1, 0},    // others continued after the undo
		{"AR12B", "R", -1, 5},   //
		{"AR1", "1", 2, 0},      // the undo is taken back
		{"RB0", "R", -1, 0},     // more was undone at once
		{"AxB", "x", -1, 3},     // made again by others
		{"Ax1", "x", -1, 0},     //
		{"RxR", "Rx", 0, 0},     //
		{"Rx", "Rx", -1, 0},     // created and deleted by the run
		{"R0", "R", -1, 0},      // deleted by an undo, of which no deletion is known
		{"R0R0", "R", -1, 0},    //
		{"R01", "R", 0, 0},      //
		{"ARRBR34", "R", -1, 4}, // what was between other writers' commits
		{"AR1u", "R", -1, 0},    //
		{"ARu13", "R", 1, 0},    // the upkeep is restored, with the version that it belongs to
		{"ABR", "R", 2, 0},      //
		{"ABR1", "R", -1, 4},    // an undo of a commit before the run: the state that it restored is not among the states
		{"ARBCR4", "R", -1, 4},  // taken back in part
		{"ARR2", "R", 1, 0},     // the newest only
		{"ARR2R", "R", 1, 0},    //
		{"AR1R1R", "R", 1, 0},   //
	} {
		d := timeline(t, c.text, c.chosen)
		target, _, other := d.undoTarget()
		is := -1
		if target != none {
			is = int(d.version(target) / 8)
		}
		in := 0
		if other != none {
			in = int(d.version(other) / 8)
		}
		if is != c.target || in != c.other {
			t.Errorf("%s, of which the run has %s: back to %d, and %d is in the way; want %d and %d", c.text, c.chosen, is, in,
				c.target, c.other)
		}
	}
}

// TestUnknownBetween verifies that a version that is not in the log is a conflict.
func TestUnknownBetween(t *testing.T) {
	d := &document{gone: true, cur: -1}
	d.add(&entry{lsn: 8, created: true}, 1, true, false)
	d.add(&entry{lsn: 24, previous: 16}, 1, true, false)
	target, _, other := d.undoTarget()
	if target != 1 || other != 1 || !d.nodes[1].unknown {
		t.Errorf("back to %d, %d is in the way", target, other)
	}
}

// TestOptionsOf verifies that the parsed description of an undo equals the written one, and that a text that does not
// describe an undo is refused.
func TestOptionsOf(t *testing.T) {
	s := selection{Options: Options{Run: "a \"b\"\n", Since: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Before: 64,
		Partial: true}}
	text := s.String()
	o, err := optionsOf(text)
	if err != nil || o != s.Options {
		t.Errorf("%+v, %v", o, err)
	}
	w := writer.Writer{Undo: text}
	if w.Fit(); w.Undo != text {
		t.Errorf("%q does not fit", text)
	}
	for _, bad := range []string{"", "{}", `{"before":8}`, `{"before":8,"run":"a","position":8}`, `{"run":"a"}`, "x"} {
		if _, err := optionsOf(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestAnyTimeline verifies that any order of versions is read without reaching an invalid state.
func TestAnyTimeline(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		var b strings.Builder
		n := 1 + rng.IntN(9)
		for i := range n {
			if rng.IntN(3) == 0 {
				b.WriteByte(byte('0' + rng.IntN(i+1)))
				continue
			}
			b.WriteByte("ABRRRx-u"[rng.IntN(8)])
		}
		d := timeline(t, b.String(), "Rx")
		target, _, other := d.undoTarget()
		if target < none || int(target) >= len(d.nodes) || other < none || int(other) >= len(d.nodes) {
			t.Fatalf("%s: %d, %d", b.String(), target, other)
		}
		for i := d.cur; i >= 0 && i != target; i = d.nodes[i].parent {
			if n := &d.nodes[i]; target != none && !n.chosen && !n.upkeep {
				t.Fatalf("%s: what others made is taken back", b.String())
			}
		}
	}
}

func TestSame(t *testing.T) {
	a := writer.Writer{Program: "memctl put", Host: "h", PID: 1, Agent: "a"}
	b := writer.Writer{Program: "memctl undo", Host: "h", PID: 2, Agent: "a", Undo: "{}"}
	if !sameWriter(&a, &b) {
		t.Error("two commands of one caller")
	}
	for _, c := range []writer.Writer{{Program: "other", Host: "h", Agent: "a"},
		{Program: "memctl", Host: "g", Agent: "a"},
		{Program: "memctl", Host: "h"}, {Program: "memctl", Host: "h", Agent: "a", Session: "s"},
		{Program: "memctl", Host: "h", Agent: "a", Client: "c"}, {Program: "memctl", Host: "h", Agent: "a", Token: "t"}} {
		if sameWriter(&a, &c) {
			t.Errorf("%+v", c)
		}
	}
}

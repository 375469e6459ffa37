package repair_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/segment"
)

// TestPlanCountsLost: the plan of a repair counts the old versions that are lost. Where none of their
// data are left to be counted, it reports the number as a minimum, and names the place.
func TestPlanCountsLost(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template")
	st, err := varve.Open(t.Context(), template, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var at []uint64
	for i := range 13 { // 12 of one document, and the end of the last
		id := "a"
		if i == 12 {
			id = "b"
		}
		m, err := st.Put(t.Context(), varve.Memory{ID: id, Content: fmt.Sprint(i, strings.Repeat("x", 700))})
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, m.Version%(1<<20))
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	zeros := func(from, to int) func(b []byte) { return func(b []byte) { clear(b[at[from]:at[to]]) } }
	bits := func(from, to int) func(b []byte) {
		return func(b []byte) {
			for _, at := range at[from:to] {
				b[at+segment.HeaderSize+20] ^= 1
			}
		}
	}
	const between = " bytes of the log, written between 20"
	for name, c := range map[string]struct {
		damage func(b []byte)
		want   []string
	}{
		"seven, one after the other":             {zeros(2, 9), []string{"loses at least 1 old version of 1 document that were in ", between}},
		"the newest, and two before":             {zeros(9, 12), []string{"loses the old versions that were in ", between, "if there were any"}},
		"one bit of each of seven":               {bits(2, 9), []string{"loses 7 old versions of 1 document"}},
		"one bit of the newest, and of two more": {bits(9, 12), []string{"loses 2 old versions of 1 document"}},
		"one bit of the newest":                  {bits(11, 12), nil},
	} {
		dir := filepath.Join(t.TempDir(), "s")
		fixture.CopyDir(t, template, dir)
		path := filepath.Join(dir, "wal", "00000001.wal")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.damage(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(planOf(t, dir).Actions)
		if len(c.want) == 0 && strings.Contains(text, "loses") {
			t.Errorf("%s: %s", name, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// TestPlanCountsMissing: the same where a whole segment is missing.
func TestPlanCountsMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 25<<10) // no compression makes it small
	for i := range 90 {
		for j := range random {
			random[j] = byte(rand.IntN(256))
		}
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i/30, i%3), Content: hex.EncodeToString(random)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "wal", "00000002.wal")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wal", "99999999.wal"), []byte("not of this log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(planOf(t, dir).Actions); !strings.Contains(text, "loses at least 3 old versions of 3 documents that were in 1024 KiB of the log, written between 20") {
		t.Error(text)
	}
}

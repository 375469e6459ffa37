package repair_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// holeStore makes a closed store with one segment of history, in which every memory is put again and
// again, in turn. It returns the text of each version.
func holeStore(t *testing.T, dir string, r *rand.Rand) map[uint64]string {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint64]string{}
	for round := range 8 {
		for i := range 60 {
			text := fmt.Sprintf("memory %d, round %d: %s", i, round, strings.Repeat("x", r.IntN(400)))
			m, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprintf("m%02d", i), Content: text})
			if err != nil {
				t.Fatal(err)
			}
			all[m.Version] = m.ID + " " + text
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// pastOf reads every version that still exists, and counts the errors.
func pastOf(t *testing.T, dir string) (have map[uint64]string, texts map[string]bool, gaps int) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	have, texts = map[uint64]string{}, map[string]bool{}
	for i := range 60 {
		for v, err := range st.History(t.Context(), fmt.Sprintf("m%02d", i)) {
			var gap *errs.GapError
			switch {
			case errors.As(err, &gap):
				gaps++
			case err != nil && !errors.Is(err, varve.ErrTruncated) && !errors.Is(err, varve.ErrCorrupt):
				t.Fatal(err)
			case err == nil:
				m, err := v.Decode()
				if err != nil {
					t.Fatal(err)
				}
				text := m.ID + " " + m.Content
				texts[text] = true
				if !v.FromFile { // otherwise its number may differ
					have[v.LSN] = text
				}
			}
		}
	}
	return have, texts, gaps
}

// A hole of 5 KB anywhere in the log loses the versions that it touches, and no others: repair keeps the
// intact entries around it as history, and its plan has counted what is lost. The damaged segment is in
// quarantine.
func TestHole(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	template := filepath.Join(t.TempDir(), "template")
	all := holeStore(t, template, r)
	holes(t, template, all, r, proofs.Share(12, 3))
	// The same in a segment that recovery no longer needs and that is not archived yet. It is set aside
	// while the log is open, and closing the log has written the checkpoint.
	pass(t, template, r)
	holes(t, template, all, r, proofs.Share(4, 1))
}

// pass lets the log of a store continue in its next segment, and the index take in the segment before.
func pass(t *testing.T, dir string, r *rand.Rand) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b := make([]byte, 200<<10) // no compression makes them small
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("z", i), Content: hex.EncodeToString(b)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "wal", "0*.wal")); len(list) < 2 || filepath.Base(list[0]) != "00000001.wal" {
		t.Fatalf("the log has gone on to %v", list)
	}
}

// holes makes holes of 5 KB, one after the other, in the first segment of copies of a store. Besides
// those at the beginning and the end there are count at random positions. The damaged segment is in
// quarantine afterwards.
func holes(t *testing.T, template string, all map[uint64]string, r *rand.Rand, count int) {
	t.Helper()
	const size = 5 << 10
	name := filepath.Join("wal", "00000001.wal")
	whole, err := os.ReadFile(filepath.Join(template, name))
	if err != nil {
		t.Fatal(err)
	}
	frames := slices.Sorted(maps.Keys(all))
	first, last := frames[0], frames[len(frames)-1]
	base := first / (1 << 20) * (1 << 20)
	places := []int{0, 0, 128, int(last-base) - 2048, // the first has random bytes, the second zeros
		256, int(last - base), 512, int(frames[len(frames)-4] - base)} // zeros here look like a log end
	for range count {
		places = append(places, r.IntN(int(last-base)-size))
	}
	for n, at := range places {
		dir := filepath.Join(t.TempDir(), "s")
		fixture.CopyDir(t, template, dir)
		b := append([]byte(nil), whole...)
		hole := b[at:min(at+size, len(b))]
		for i := range hole {
			if hole[i] = 0; n%2 == 0 {
				hole[i] = byte(r.Uint32())
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		broken := files(t, dir)
		plan := planOf(t, dir)
		apply(t, plan)
		have, texts, gaps := pastOf(t, dir)
		lost := 0
		for v, want := range all {
			got, ok := have[v]
			from := int(v - base)
			switch {
			case ok && got != want:
				t.Errorf("hole at %d: version %d is %.40q, not %.40q", at, v, got, want)
			case !texts[want]:
				lost++
				if end := from + 64 + 1024; end <= at || from >= at+size { // no frame is longer
					t.Errorf("hole at %d: version %d at %d is lost, and does not touch the hole", at, v, from)
				}
			}
		}
		text := fmt.Sprint(plan.Actions)
		counted := regexp.MustCompile(`loses (?:at least )?(\d+) old version`).FindStringSubmatch(text) // one version of each document per hole
		if want := fmt.Sprint(lost); lost > 0 && (counted == nil || counted[1] != want) || lost == 0 && counted != nil {
			t.Errorf("hole at %d: %d versions are lost, the plan says: %s", at, lost, text)
		}
		if lost > 0 && gaps == 0 {
			t.Errorf("hole at %d: the history does not tell of %d lost versions", at, lost)
		}
		if lost > 25 {
			t.Errorf("hole at %d: %d versions are lost", at, lost)
		}
		if was := broken[filepath.ToSlash(name)]; len(plan.Actions) > 0 && files(t, dir)[filepath.ToSlash(name)] != was && !inQuarantine(t, dir, was) {
			t.Errorf("hole at %d: the damaged segment is not in quarantine", at)
		}
	}
}

package index

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/vfs"
)

// TestVerifyPairs: each pair of a session or an expiry that is missing, or that no memory has, is named, also where the
// number of pairs is right.
func TestVerifyPairs(t *testing.T) {
	key := func(s string) string { return escape(s) }
	for name, c := range map[string]struct {
		change func(*pairs)
		want   []string
	}{
		"sound": {func(*pairs) {}, nil},
		"too few": {func(p *pairs) { p.sessions = p.sessions[1:] },
			[]string{`"x" is missing in the section by_session`}},
		"too many": {func(p *pairs) { p.sessions = append(p.sessions, pairEdit{key("t\x00z"), true}) },
			[]string{`"z" is in session "t"`}},
		"swapped": {func(p *pairs) {
			p.sessions[0].enc, p.sessions[1].enc = key("t\x00x"), key("s\x00y")
			slices.SortFunc(p.sessions, func(a, b pairEdit) int { return strings.Compare(a.enc, b.enc) })
		}, []string{`"x" is missing in the section by_session`, `"y" is missing in the section by_session`,
			`"y" is in session "s"`, `"x" is in session "t"`}},
		"no expiry": {func(p *pairs) { p.expiries = p.expiries[1:] },
			[]string{`"x" is missing in the section by_expiry`}},
		"another expiry": {func(p *pairs) { p.expiries[0].enc = key(ExpiryKey(t0.Add(time.Minute), "x")) },
			[]string{`"x" is missing in the section by_expiry`, `"x" expires at`}},
		"malformed": {func(p *pairs) { p.sessions = append(p.sessions, pairEdit{key("tz"), true}) },
			[]string{`by_session has the malformed key "tz"`}},
	} {
		dir := t.TempDir()
		m := newModel()
		m.put(Memories, "x", "s", t0)
		m.put(Memories, "y", "t", time.Time{})
		m.put(Memories, "z", "", time.Time{})
		ch := m.take()
		p := newPairs(Empty(8), &ch)
		plan := p.plan(&Target{})
		plan.Edits = func(sec int) (table.Edits, error) {
			if sec == BySession { // the memories were read
				c.change(p)
			}
			return p.edits(sec)
		}
		to := target(vfs.OS(), dir, m.lsn)
		if _, err := table.WriteBase(Empty(8), to.table(nil), plan); err != nil {
			t.Fatal(name, err)
		}
		s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, beside := range []bool{false, true} {
			faults := Verify(s)
			if beside {
				faults = VerifyBeside(s)
			}
			var got []string
			for err := range faults {
				got = append(got, err.Error())
			}
			same := len(got) == len(c.want)
			for i := 0; same && i < len(got); i++ {
				same = strings.Contains(got[i], c.want[i])
			}
			if !same {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

package index

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

const store = "018f3c2e-1a2b-7000-8000-000000000001"

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

func entry(version uint64, session string, expires time.Time) Entry {
	return Entry{
		Filepath: "memories/x.json", CreatedAt: t0, UpdatedAt: t0, Score: 0.85, Size: 1043,
		Mtime: t0.UnixMicro(), Version: version, SessionID: session, ExpiresAt: expires,
	}
}

// model is the expected content of the index.
type model struct {
	live [2]map[string]Entry
	lsn  uint64
	// changed since the last rewrite
	changes []Change
	byPos   map[uint64]Entry
	members map[string][]string // of the live assemblies
}

func newModel() *model {
	return &model{live: [2]map[string]Entry{{}, {}}, lsn: 8, byPos: map[uint64]Entry{}, members: map[string][]string{}}
}

func (m *model) put(sec int, id, session string, expires time.Time, members ...string) {
	if sec == Assemblies {
		session, expires = "", time.Time{}
	}
	e := entry(m.lsn, session, expires)
	if sec == Assemblies {
		e.Score, e.MemberCount = 0, int64(len(members))
		m.members[id] = members
	}
	m.live[sec][id], m.byPos[m.lsn] = e, e
	m.changes = append(m.changes, Change{Section: sec, ID: id, Version: m.lsn, Members: members})
	m.lsn += 8
}

func (m *model) del(sec int, id string) {
	delete(m.live[sec], id)
	if sec == Assemblies {
		delete(m.members, id)
	}
	m.changes = append(m.changes, Change{Section: sec, ID: id, Version: m.lsn, Deleted: true})
	m.lsn += 8
}

func (m *model) take() Changes {
	ch := Changes{List: m.changes, Line: func(dst []byte, c Change) ([]byte, error) {
		e := m.byPos[c.Version]
		if c.Section == Assemblies {
			return e.AppendAssembly(dst)
		}
		return e.AppendMemory(dst)
	}}
	m.changes = nil
	return ch
}

// check compares everything that can be read from a set with the model.
func (m *model) check(t rapid.TB, s *Set) {
	t.Helper()
	sessions, expiries := map[string]bool{}, map[string]bool{}
	for sec, live := range m.live {
		if got := s.Count(sec); got != int64(len(live)) {
			t.Fatalf("section %d: %d entries, want %d", sec, got, len(live))
		}
		for id, want := range live {
			line, ok, err := s.Get(nil, sec, id)
			if err != nil || !ok {
				t.Fatalf("%q: %v, %v", id, ok, err)
			}
			if e, err := ParseLine(line); err != nil || e != want {
				t.Fatalf("%q: %s, %v, want %+v", id, line, err, want)
			}
			if want.SessionID != "" {
				sessions[SessionKey(want.SessionID, id)] = true
			}
			if !want.ExpiresAt.IsZero() {
				expiries[ExpiryKey(want.ExpiresAt, id)] = true
			}
		}
		m.order(t, s, sec, slices.Collect(maps.Keys(live)))
	}
	m.order(t, s, BySession, slices.Collect(maps.Keys(sessions)))
	m.order(t, s, ByExpiry, slices.Collect(maps.Keys(expiries)))
	members, byMember := map[string]bool{}, map[string]bool{}
	for assembly, list := range m.members {
		for _, id := range list {
			members[MemberKey(assembly, id)], byMember[MemberKey(id, assembly)] = true, true
		}
		got, err := Pairs(s, Members, assembly)
		if want := slices.Sorted(slices.Values(list)); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Fatalf("members of %q: %q, %v, want %q", assembly, got, err, want)
		}
	}
	m.order(t, s, Members, slices.Collect(maps.Keys(members)))
	m.order(t, s, ByMember, slices.Collect(maps.Keys(byMember)))
	for err := range Verify(s) {
		t.Fatalf("Verify: %v", err)
	}
}

func (m *model) order(t rapid.TB, s *Set, sec int, keys []string) {
	t.Helper()
	slices.SortFunc(keys, func(a, b string) int {
		ea, _ := table.EncodeKey(a)
		eb, _ := table.EncodeKey(b)
		return strings.Compare(ea, eb)
	})
	spans := []struct {
		Span
		want []string
	}{{Span{}, keys}}
	for i := 0; i < len(keys); i += 1 + len(keys)/4 {
		p := keys[i][:len(keys[i])/2]
		for p != "" && p[len(p)-1] >= 0x80 { // never half a rune
			p = p[:len(p)-1]
		}
		var with []string
		for _, k := range keys {
			if strings.HasPrefix(k, p) {
				with = append(with, k)
			}
		}
		spans = append(spans, []struct {
			Span
			want []string
		}{
			{Span{From: keys[i]}, keys[i:]},
			{Span{From: keys[i], After: true}, keys[i+1:]},
			{Span{Prefix: p}, with},
		}...)
	}
	for _, sp := range spans {
		var got []string
		for it, err := range s.Range(sec, sp.Span) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(it.Key))
		}
		if !slices.Equal(got, sp.want) {
			t.Fatalf("section %d, %+v: got %q, want %q", sec, sp.Span, got, sp.want)
		}
	}
}

var genID = rapid.OneOf(
	rapid.SampledFrom([]string{"a", "ab", "abc", "a\x00b", "b", "A", "😀", "😀😀", `"`, `\`, `\"`, " ", "!", "a!", "a b", "\n", "\x7f", "\u2028"}),
	rapid.StringOf(rapid.RuneFrom([]rune("ab\x00\x01\x1f\n\"\\ !é😀"))),
	rapid.Map(rapid.IntRange(1, 1024), func(n int) string { return strings.Repeat("\x02x\"", n/3+1)[:n] }),
)

func target(fsys vfs.FS, dir string, lsn uint64) Target {
	return Target{FS: fsys, Dir: dir, Temp: filepath.Join(dir, "index.tmp"), Store: store, LSN: lsn, Now: t0, Backup: true, Backups: 3}
}

// TestModel: random histories of puts, deletes, deltas and merges against a map.
func TestModel(t *testing.T) {
	proofs.OneGoroutine(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "varve-index")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := newModel()
		s := Empty(8)
		defer func() { _ = s.Release() }()
		random(t, m, rapid.IntRange(0, 60).Draw(t, "first"))
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			write := WriteBase
			if s.Base() != nil && m.lsn > s.LSN() && rapid.Bool().Draw(t, "delta") {
				write = WriteDelta
			}
			w, err := write(s, target(vfs.OS(), dir, m.lsn), m.take())
			if err != nil || w.BackupErr != nil {
				t.Fatal(err, w.BackupErr)
			}
			next, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, s)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Release()
			s = next
			m.check(t, s)
			random(t, m, rapid.IntRange(0, 30).Draw(t, "more"))
		}
	})
}

func random(t *rapid.T, m *model, n int) {
	for range n {
		sec := rapid.IntRange(0, 1).Draw(t, "section")
		id := genID.Draw(t, "id")
		if keys := slices.Sorted(maps.Keys(m.live[sec])); len(keys) > 0 && rapid.Bool().Draw(t, "known") {
			id = rapid.SampledFrom(keys).Draw(t, "which")
		}
		if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
			m.del(sec, id)
			continue
		}
		session := rapid.SampledFrom([]string{"", "", "s", "s1", "s\x00", "\x01", "é\n"}).Draw(t, "session")
		var expires time.Time
		if rapid.Bool().Draw(t, "expires") {
			expires = t0.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "in")) * time.Millisecond)
		}
		var members []string
		if sec == Assemblies {
			members = rapid.SliceOfNDistinct(genID, 0, 6, rapid.ID[string]).Draw(t, "members")
			if known := slices.Sorted(maps.Keys(m.live[Memories])); len(known) > 0 {
				members = append(members, known[0])
				members = slices.Compact(slices.Sorted(slices.Values(members)))
			}
		}
		m.put(sec, id, session, expires, members...)
	}
}

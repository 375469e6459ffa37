package index

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// The members are only in the line of the log.
func TestFinishMembers(t *testing.T) {
	e := entry(0, "", time.Time{})
	e.Filepath, e.MemberCount, e.Mtime = "assemblies/x.json", 3, 0
	plain, err := e.AppendAssembly(nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Finish(nil, plain, 17, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range []string{``, `"a"`, `"b\",\"members\":[","é\u0000\n"`} {
		line := string(plain[:len(plain)-1]) + `,"members":[` + ids + `]}`
		if _, err := ParseLine([]byte(line)); err != nil {
			t.Error(err)
		}
		with, err := Finish(nil, []byte(line), 17, 5, 0)
		if err != nil || string(with) != string(without) {
			t.Errorf("finished: %s, %v\nwithout:  %s", with, err, without)
		}
	}
	session := entry(0, `,"members":["x"]`, time.Time{})
	session.Mtime = 0
	line, err := session.AppendMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	if with, err := Finish(nil, line, 17, 5, 0); err != nil || len(with) < len(line) {
		t.Errorf("of a memory: %s, %v", with, err)
	}
}

// A change without the members that its line counts would lose them.
func TestMembersMissing(t *testing.T) {
	m := newModel()
	m.put(Assemblies, "a", "", time.Time{}, "x", "y")
	ch := m.take()
	ch.List[0].Members = nil
	if _, err := WriteBase(Empty(8), target(vfs.OS(), t.TempDir(), m.lsn),
		ch); err == nil || !strings.Contains(err.Error(), "the member count 2, but the change lists 0 members") {
		t.Error(err)
	}
}

// TestBeforeMembers: an index older than the two sections can be read, also with a delta over it, and
// the merged base has the sections.
func TestBeforeMembers(t *testing.T) {
	dir := t.TempDir()
	m := newModel()
	m.put(Memories, "x", "s", t0)
	older := Schema()
	older.Sections = older.Sections[:Members]
	ch := m.take()
	p := newPairs(Empty(8), &ch)
	to := target(vfs.OS(), dir, m.lsn)
	if _, err := table.WriteBase(table.Empty(older, 8), to.table(nil), p.plan(&to)); err != nil {
		t.Fatal(err)
	}
	load := func() *Set {
		s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.check(t, s)
		return s
	}
	s := load()
	if s.Base().Has(Members) || s.Base().Has(ByMember) || !s.Base().Has(ByExpiry) {
		t.Error("the base has the sections")
	}
	m.put(Assemblies, "a", "", time.Time{}, "x", "gone")
	if _, err := WriteDelta(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	_ = s.Release()
	s = load()
	if got, err := Pairs(s, ByMember, "x"); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("x is in %q, %v", got, err)
	}
	m.put(Assemblies, "a", "", time.Time{}, "gone", "y")
	if _, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	_ = s.Release()
	s = load()
	if !s.Base().Has(ByMember) {
		t.Error("the new base has no by_member")
	}
	_ = s.Release()
}

// TestVerifyMembers: pairs that do not agree with each other or with the lines.
func TestVerifyMembers(t *testing.T) {
	for name, change := range map[string]func(*pairs){
		"a pair too few":            func(p *pairs) { p.members = p.members[1:] },
		"the other pair is missing": func(p *pairs) { p.byMember = p.byMember[1:] },
		"no such assembly":          func(p *pairs) { p.pair("b", "x", true) },
		"not in members": func(p *pairs) {
			p.byMember = append(p.byMember,
				pairEdit{escape(MemberKey("z", "a")), true})
		},
	} {
		dir := t.TempDir()
		m := newModel()
		m.put(Memories, "x", "s", t0)
		m.put(Assemblies, "a", "", time.Time{}, "x", "y")
		ch := m.take()
		p := newPairs(Empty(8), &ch)
		plan := p.plan(&Target{})
		plan.Edits = func(sec int) (table.Edits, error) {
			if sec == Members {
				change(p)
			}
			return p.edits(sec)
		}
		to := target(vfs.OS(), dir, m.lsn)
		if _, err := table.WriteBase(Empty(8), to.table(nil), plan); err != nil {
			t.Fatal(err)
		}
		s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range Verify(s) {
			found++
		}
		if found == 0 {
			t.Errorf("%s: not found", name)
		}
		_ = s.Release()
	}
}

// After a backup is purged of a memory, no assembly in it has the memory, and it is valid.
func TestPurgeMembers(t *testing.T) {
	dir := t.TempDir()
	m := newModel()
	m.put(Memories, "x", "s", t0)
	m.put(Memories, "y", "s", t0)
	m.put(Assemblies, "a", "", time.Time{}, "x", "y", "gone")
	m.put(Assemblies, "b", "", time.Time{}, "y")
	m.put(Assemblies, "c", "", time.Time{}, "gone")
	write := func(s *Set) *Set {
		t.Helper()
		if _, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
			t.Fatal(err)
		}
		_ = s.Release()
		s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := write(Empty(8))
	was := *m
	m.put(Memories, "z", "", t0)
	s = write(s)
	defer s.Release()
	list, err := Backups(vfs.OS(), dir)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	to := target(vfs.OS(), filepath.Join(dir, "purge"), 0)
	to.Temp = filepath.Join(dir, "purge", "temp")
	if err := os.Mkdir(to.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if r, err := PurgeBackups(dir, to, Memories, []string{"y", "gone"}, memoryFile); err != nil || len(r.Rewritten) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := PurgeBackups(dir, to, Assemblies, []string{"c", "x"},
		func(id string) string { return "assemblies/" + jsondoc.FileName(id) }); err != nil || len(r.Rewritten) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	old, err := OpenBackup(vfs.OS(), dir, list[0], store)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Release()
	was.live = [2]map[string]Entry{maps.Clone(was.live[0]), maps.Clone(was.live[1])}
	delete(was.live[Memories], "y")
	delete(was.live[Memories], "z")
	delete(was.live[Assemblies], "c")
	was.members = map[string][]string{"a": {"x"}, "b": {}}
	for id, members := range was.members {
		e := was.live[Assemblies][id]
		e.MemberCount = int64(len(members))
		was.live[Assemblies][id] = e
	}
	was.check(t, old)

	// Without room for a rewrite, the backups with data of the document are removed, and no others.
	drop := func(section int, id string) int {
		t.Helper()
		gone, _, err := DropBackups(vfs.OS(), dir, store, section, []string{id})
		if err != nil {
			t.Fatal(err)
		}
		return len(gone)
	}
	if n := drop(Memories, "y") + drop(Memories, "a") + drop(Assemblies, "x") + drop(Assemblies, "c"); n != 0 {
		t.Errorf("%d backups went that have nothing of it", n)
	}
	if n := drop(Assemblies, "a"); n != 1 {
		t.Errorf("a backup with a line of the assembly: %d went", n)
	}
}

// A backup in which a memory is only a member of an assembly.
func TestDropMembers(t *testing.T) {
	dir := t.TempDir()
	m := newModel()
	m.put(Memories, "x", "s", t0)
	m.put(Assemblies, "a", "", time.Time{}, "missing")
	s := write(t, vfs.OS(), dir, m, Empty(8), WriteBase)
	defer s.Release()
	m.put(Memories, "y", "", t0)
	if _, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	if gone, _, err := DropBackups(vfs.OS(), dir, store, Memories, []string{"missing"}); err != nil || len(gone) != 1 {
		t.Error(gone, err)
	}
}

package logs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/writer"
)

// writerOptions returns the options of a handle with a small log, which is flushed only by the test.
func writerOptions(agent string) *varve.Options {
	o := *fixture.SmallLog
	o.NoBackground, o.Writer = true, &varve.Writer{Program: "test", Agent: agent}
	return &o
}

func fill(t *testing.T, st *varve.Store, n int) {
	t.Helper()
	for i := range n {
		m := varve.Memory{ID: fmt.Sprint("fill", i%50), Content: strings.Repeat("x", 2000)}
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// Each version has its writer: of two handles, of a client of one of them, and none for a handle without
// a writer. The numbers outlive the log that explained them, and a new index.
func TestWriters(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	one := fixture.Open(t, dir, writerOptions("one"))
	two := fixture.Open(t, dir, writerOptions("two"))
	none := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	put := func(st *varve.Store, as string, id string) {
		t.Helper()
		ctx := ctx
		if as != "" {
			ctx = varve.WithWriter(ctx, varve.Writer{Agent: as, Client: as})
		}
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: as + id}); err != nil {
			t.Fatal(err)
		}
	}
	put(one, "", "a")
	put(two, "", "a")
	put(none, "", "a")
	put(one, "client", "a")
	put(one, "", "b")
	put(two, "", "c")
	put(none, "", "d")
	if err := two.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	put(one, "client", "e")
	check := func(when string, st *varve.Store) {
		t.Helper()
		if got, want := fixture.WritersOf(t, st, "a"),
			[]string{"one", "two", varve.UnknownWriter, "client"}; !slices.Equal(got, want) {
			t.Errorf("%s: a is by %v, want %v", when, got, want)
		}
		if got, want := fixture.WritersOf(t, st, "b"), []string{"one", "two"}; !slices.Equal(got, want) {
			t.Errorf("%s: b is by %v, want %v", when, got, want)
		}
		for by, want := range map[string][]string{"one": nil, "two": {"c"}, "client": {"a", "e"}, varve.UnknownWriter: {"d"},
			"test": {"a", "c", "e"}, "1": nil, "2": {"c"}, "3": {"a", "e"}, "nobody": nil} {
			var got []string
			for _, id := range fixture.IdsBy(t, st, by) {
				if !strings.HasPrefix(id, "fill") {
					got = append(got, id)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the memories by %s are %v, want %v", when, by, got, want)
			}
		}
		if n, err := st.Count(ctx, varve.WrittenBy("client")); n != 2 || err != nil {
			t.Errorf("%s: %d memories by client, %v", when, n, err)
		}
		hits, err := st.Search(ctx, varve.Query{Text: "clienta cliente c d", Limit: 10}, varve.WrittenBy("client"))
		if len(hits) != 2 || err != nil {
			t.Errorf("%s: %d hits by client, %v", when, len(hits), err)
		}
	}
	check("in the log", one)
	check("in the log, by a reader", fixture.Open(t, dir, &varve.Options{ReadOnly: true}))
	if err := two.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	check("in the index", one)
	fill(t, none, 400)
	if err := two.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{one, two, none, fixture.Open(t, dir, &varve.Options{ReadOnly: true})} {
		if got := fixture.IdsBy(t, st, "client"); !slices.Equal(got, []string{"a", "e"}) {
			t.Errorf("after the log was released, the memories by client are %v", got)
		}
		if all, err := st.Admin().Writers(ctx); len(all) != 3 || err != nil {
			t.Errorf("%v, %v", all, err)
		}
	}
	put(two, "", "z")
	if all, err := one.Admin().Writers(ctx); len(all) != 3 || err != nil {
		t.Errorf("a number was issued again: %v, %v", all, err)
	}
}

// A store without writers is written as by programs that do not know writers.
func TestWritersNone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	fill(t, st, 20)
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := storetest.Inner(st).Engine.Log().Features(); f&(wal.FeatureWriters|wal.FeatureFields) != 0 {
		t.Errorf("features %v", f)
	}
	if _, err := os.Stat(filepath.Join(dir, "wal", "writers")); !os.IsNotExist(err) {
		t.Error(err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "memory_index.json"))
	if err != nil || strings.Contains(string(index), `"by":`) {
		t.Error("the index names writers", err)
	}
}

// The explanations of the numbers may be lost: if wal/writers is lost they are taken from log and
// archive; without these no writer is known, and no wrong writer is named.
func TestWritersLost(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	open := func(agent string) *varve.Store {
		st, err := varve.Open(ctx, dir, writerOptions(agent))
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	closed := func(st *varve.Store) {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	st := open("one")
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	closed(st)
	path := filepath.Join(dir, "wal", "writers")
	for _, damage := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.Truncate(path, 30) },
		func() error { return os.WriteFile(path, []byte("nonsense\n"), 0o600) },
		func() error { // a line in the middle
			b := fixture.ReadBytes(t, path)
			b[bytes.IndexByte(b, '\n')-4] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		st := open("two")
		if _, err := st.Put(ctx, varve.Memory{Content: "y"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
		if got := fixture.IdsBy(t, st, "one"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the memories by one are %v", got)
		}
		closed(st)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	st = open("three")
	defer closed(st)
	if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "y"}); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"one", "two"} {
		if got := fixture.IdsBy(t, st, by); got != nil {
			t.Errorf("without wal/ the memories by %s are %v", by, got)
		}
	}
	if got := fixture.IdsBy(t, st, "three"); !slices.Equal(got, []string{"new"}) {
		t.Errorf("the memories by three are %v", got)
	}
}

// Many handles that write at once get different numbers.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	const handles, each = 8, 8
	var list []*varve.Store
	for i := range handles {
		list = append(list, fixture.Open(t, dir, writerOptions(fmt.Sprint("agent", i))))
	}
	failed := make(chan error, handles*each)
	for i, st := range list {
		for j := range each {
			go func() {
				_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("%d-%d", i, j), Content: "x"})
				failed <- err
			}()
		}
	}
	for range handles * each {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	all, err := list[0].Admin().Writers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for _, w := range all {
		if seen[w.Number] {
			t.Errorf("number %d was issued twice", w.Number)
		}
		seen[w.Number] = true
	}
	if len(all) != handles {
		t.Errorf("%d writers", len(all))
	}
	for i := range handles {
		if got := fixture.IdsBy(t, list[0], fmt.Sprint("agent", i)); len(got) != each {
			t.Errorf("%d memories by agent %d", len(got), i)
		}
	}
}

// 10,000 writers do not make a put larger, and each is named.
func TestWritersMany(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Writer: &varve.Writer{Program: "test"}})
	size := func() uint64 {
		before := st.Admin().Stats().Durable
		if _, err := st.Put(ctx, varve.Memory{ID: "x", Content: "x"}); err != nil {
			t.Fatal(err)
		}
		return st.Admin().Stats().Durable - before
	}
	size()
	first := size()
	for i := range n {
		w := varve.WithWriter(ctx, varve.Writer{Session: fmt.Sprint("session", i)})
		if _, err := st.Put(w, varve.Memory{ID: fmt.Sprint("m", i%100), Content: "y"}); err != nil {
			t.Fatal(err)
		}
	}
	if last := size(); last > first+16 {
		t.Errorf("a put takes %d bytes, before %d", last, first)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if got := fixture.IdsBy(t, st, fmt.Sprint("session", n-1)); len(got) != 1 {
		t.Errorf("%v", got)
	}
	all, err := st.Admin().Writers(ctx)
	if len(all) != n+1 || err != nil {
		t.Errorf("%d writers, %v", len(all), err)
	}
}

// writersNow returns the writers of the memories as they are, by id.
func writersNow(t *testing.T, st *varve.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if w := st.Admin().WriterOf(m.By, m.Version); w.Since == 0 {
			all[m.ID] = varve.UnknownWriter
		} else {
			all[m.ID] = w.Agent
		}
	}
	return all
}

// A store that is restored names the writers of its memories, at each moment; so do the copies of
// versions that it keeps when they are replaced, and a rebuilt index.
func TestWritersRestored(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	store, backup := filepath.Join(top, "s"), filepath.Join(top, "backup")
	one := fixture.Open(t, store, writerOptions("one"))
	two := fixture.Open(t, store, writerOptions("two"))
	put := func(st *varve.Store, ids ...string) (last uint64) {
		t.Helper()
		for _, id := range ids {
			m, err := st.Put(ctx, varve.Memory{ID: id, Content: "by one of them"})
			fixture.Must(t, err)
			last = m.Version
		}
		return last
	}
	none := fixture.Open(t, store, &varve.Options{NoBackground: true})
	put(none, "unknown")
	put(one, "a", "b", "c")
	put(two, "b")
	info, err := one.Backup(ctx, backup, varve.BackupOptions{})
	fixture.Must(t, err)
	if info.Writers == "" {
		t.Error("the backup has no writers")
	}
	if _, err := varve.CheckBackup(ctx, backup); err != nil {
		t.Error(err)
	}
	moment := put(fixture.Open(t, store, writerOptions("three")), "c")
	put(two, "a")
	for name, c := range map[string]struct {
		o    varve.RestoreOptions
		want map[string]string
	}{
		"the backup": {varve.RestoreOptions{},
			map[string]string{"unknown": varve.UnknownWriter, "a": "one", "b": "two", "c": "one"}},
		"a moment": {varve.RestoreOptions{Log: store, Version: moment},
			map[string]string{"unknown": varve.UnknownWriter, "a": "one", "b": "two", "c": "three"}},
		"the end": {varve.RestoreOptions{Log: store},
			map[string]string{"unknown": varve.UnknownWriter, "a": "two", "b": "two", "c": "three"}},
	} {
		to := filepath.Join(top, "restored "+name)
		_, err := varve.Restore(ctx, backup, to, &c.o)
		fixture.Must(t, err)
		st := fixture.Open(t, to, writerOptions("new"))
		if got := writersNow(t, st); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		fixture.Must(t, st.Admin().RebuildIndex(ctx))
		if got := writersNow(t, st); !maps.Equal(got, c.want) {
			t.Errorf("%s, with a new index: %v, want %v", name, got, c.want)
		}
		put(st, "b")
		if got, want := fixture.WritersOf(t, st, "b"), []string{"two", "new"}; !slices.Equal(got, want) {
			t.Errorf("%s: b is by %v, want %v", name, got, want)
		}
		if got := fixture.IdsBy(t, st, "new"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("%s: the memories by new are %v", name, got)
		}
		// The copy of what was replaced, once the file is gone, too.
		fixture.Must(t, st.Admin().Compact(ctx))
		if got, want := fixture.WritersOf(t, st, "b"), []string{"two", "new"}; !slices.Equal(got, want) {
			t.Errorf("%s, compacted: b is by %v, want %v", name, got, want)
		}
		all, err := st.Admin().Writers(ctx)
		fixture.Must(t, err)
		for i, w := range all {
			if w.Number != uint32(i+1) {
				t.Errorf("%s: %+v", name, all)
			}
		}
	}
	damagedWriters(t, backup, filepath.Join(top, "damaged"))
}

// damagedWriters restores a backup whose files.writers is damaged: no document gets another writer.
func damagedWriters(t *testing.T, backup, to string) {
	t.Helper()
	path := filepath.Join(backup, "files.writers")
	b := fixture.ReadBytes(t, path)
	for i, harm := range []func() error{
		func() error {
			return os.WriteFile(path, bytes.Replace(b, []byte("memories/a"), []byte("memories/b"), 1), 0o600)
		},
		func() error { return os.Truncate(path, int64(len(b)/2)) },
		func() error { return os.Remove(path) },
	} {
		fixture.Must(t, harm())
		if _, err := varve.CheckBackup(t.Context(), backup); !errors.Is(err, varve.ErrCorrupt) {
			t.Errorf("%d: checked: %v", i, err)
		}
		dir := fmt.Sprint(to, i)
		if _, err := varve.Restore(t.Context(), backup, dir, &varve.RestoreOptions{Strict: true}); !errors.Is(err,
			varve.ErrCorrupt) {
			t.Errorf("%d: strict: %v", i, err)
		}
		r, err := varve.Restore(t.Context(), backup, dir, nil)
		if err != nil || len(r.Damage) != 1 || r.Damage[0].Path != "files.writers" || r.Damage[0].Missing {
			t.Fatalf("%d: %+v, %v", i, r.Damage, err)
		}
		for id, w := range writersNow(t, fixture.Open(t, dir, &varve.Options{NoBackground: true})) {
			if w != varve.UnknownWriter {
				t.Errorf("%d: %s is by %s", i, id, w)
			}
		}
	}
}

// A copy of the folder and a migrated store are the same store, with its writers; of a clone without wal/
// they are unknown.
func TestWritersCopied(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	from := filepath.Join(top, "s")
	st, err := varve.Open(ctx, from, writerOptions("one"))
	fixture.Must(t, err)
	for _, id := range []string{"a", "b"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"})
		fixture.Must(t, err)
	}
	fill(t, st, 400) // the explanation of the writer is released
	fixture.Must(t, errors.Join(st.Admin().Compact(ctx), st.Close()))
	clone, copied, moved := filepath.Join(top, "clone"), filepath.Join(top, "copy"), filepath.Join(top, "moved")
	fixture.Must(t, os.CopyFS(copied, os.DirFS(from)))
	fixture.Must(t, fixture.TakeAlong(filepath.Join(from, "memories"), filepath.Join(clone, "memories")))
	fixture.Must(t, fixture.TakeAlong(filepath.Join(from, "config.json"), filepath.Join(clone, "config.json")))
	_, err = varve.Migrate(ctx, from, moved, &varve.MigrateOptions{Switch: true})
	fixture.Must(t, err)
	for dir, want := range map[string]string{copied: "one", moved: "one", clone: varve.UnknownWriter} {
		if got := writersNow(t, fixture.Open(t, dir, &varve.Options{NoBackground: true}))["a"]; got != want {
			t.Errorf("%s: a is by %s, want %s", filepath.Base(dir), got, want)
		}
	}
}

// A repair that begins another log, and rebuilds the index, keeps the writers. No number is issued
// again, even if the index is lost, too.
func TestWritersRepaired(t *testing.T) {
	t.Parallel()
	for _, index := range []bool{true, false} {
		ctx, top := t.Context(), t.TempDir()
		dir, running := filepath.Join(top, "killed"), filepath.Join(top, "s")
		st, err := varve.Open(ctx, running, writerOptions("one"))
		fixture.Must(t, err)
		_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
		fixture.Must(t, errors.Join(err, st.Close()))
		st, err = varve.Open(ctx, running, writerOptions("two"))
		fixture.Must(t, err)
		for _, id := range []string{"b", "c", "d"} {
			_, err = st.Put(ctx, varve.Memory{ID: id, Content: "x"})
			fixture.Must(t, err)
		}
		fixture.Must(t, errors.Join(os.CopyFS(dir, os.DirFS(running)), st.Close())) // only the log explains two
		segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
		fixture.Must(t, err)
		b := fixture.ReadBytes(t, segments[0])
		at := bytes.Index(b, []byte("mc")) // the key of a memory
		if at < 0 {
			t.Fatal("the log does not have it")
		}
		b[at] ^= 4
		fixture.Must(t, os.WriteFile(segments[0], b, 0o600))
		if !index {
			fixture.Must(t, os.Remove(filepath.Join(dir, "memory_index.json")))
		}
		plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
		fixture.Must(t, err)
		if index && !slices.ContainsFunc(plan.Actions, func(a varve.RepairAction) bool { return a.Do == repair.NewLog }) {
			t.Fatalf("no new log: %+v", plan.Actions)
		}
		_, err = plan.Apply(ctx)
		fixture.Must(t, err)
		st = fixture.Open(t, dir, writerOptions("three"))
		_, err = st.Put(ctx, varve.Memory{ID: "e", Content: "x"})
		fixture.Must(t, err)
		got := writersNow(t, st)
		want := map[string]string{"a": "one", "b": "two", "d": "two", "e": "three"}
		if !maps.Equal(got, want) {
			t.Errorf("with an index %t: %v, want %v", index, got, want)
		}
		all, err := st.Admin().Writers(ctx)
		if err != nil || len(all) != 3 || all[2].Number != 3 {
			t.Errorf("with an index %t: %+v, %v", index, all, err)
		}
	}
}

// A name in Options.Writer has a limit, which the error names; a name that a client gives is cut.
// Control characters for terminals are escaped.
func TestWriterNames(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	long := strings.Repeat("n", 2048)
	_, err := varve.Open(ctx, dir, writerOptions(long))
	if !errors.Is(err, varve.ErrTooLarge) || !strings.Contains(err.Error(), "Writer.agent of 2048 bytes") ||
		!strings.Contains(err.Error(), "limit: 256 bytes") || strings.Contains(err.Error(), "nnn") {
		t.Errorf("%v", err)
	}
	o := writerOptions("a\x1b[31m\r\nb\u202e")
	o.Writer.Token = "laptop"
	st := fixture.Open(t, dir, o)
	_, err = st.Put(varve.WithWriter(ctx, varve.Writer{Client: long, ClientVersion: "\x00"}),
		varve.Memory{ID: "x", Content: "x"})
	fixture.Must(t, err)
	for v, err := range st.History(ctx, "x") {
		fixture.Must(t, err)
		if w := v.Writer; w.Agent != `a\u001b[31m\u000d\u000ab\u202e` || w.ClientVersion != `\u0000` || w.Token != "laptop" ||
			len(w.Client) != writer.MostName || !strings.HasSuffix(w.Client, writer.Mark) {
			t.Errorf("%+v", w)
		}
	}
	if got := fixture.IdsBy(t, st, "laptop"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("by the token: %v", got)
	}
}

// Working memory that several writers change at once: each entry has one writer.
func TestWritersOfWorkingMemory(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, writerOptions("one"))
	scope, err := st.Working().Open(ctx, working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	const each = 20
	done := make(chan error)
	for _, agent := range []string{"", "two", "three"} {
		go func() {
			ctx := ctx
			if agent != "" {
				ctx = varve.WithWriter(ctx, varve.Writer{Agent: agent})
			}
			var err error
			for i := range each {
				err = errors.Join(err, scope.Set(ctx, fmt.Sprint(agent, i), agent))
			}
			done <- err
		}()
	}
	for range 3 {
		fixture.Must(t, <-done)
	}
	changes := map[string]int{}
	for c, err := range st.Log(ctx, varve.LogOptions{}) {
		fixture.Must(t, err)
		changes[c.Writer.Agent] += len(c.Changes)
	}
	for _, agent := range []string{"one", "two", "three"} {
		if changes[agent] == 0 || changes[agent] > each+1 { // one is the beginning of the scope
			t.Errorf("commits by %v", changes)
		}
	}
}

// Events about a version name its writer, and events about a change the writer of the change.
func TestWriterOfEvents(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	o := writerOptions("one")
	var events []varve.Event
	o.Listener = func(e varve.Event) {
		if e.Writer.Number != 0 {
			events = append(events, e)
		}
	}
	st := fixture.Open(t, dir, o)
	fixture.Must(t, st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
		c.MaxMemories, c.AtLimit = 2, varve.AtLimitEvictOldest
		return nil
	}))
	for _, id := range []string{"a", "b", "c"} {
		_, err := st.Put(varve.WithWriter(ctx, varve.Writer{Agent: "two"}), varve.Memory{ID: id, Content: "x"})
		fixture.Must(t, err)
	}
	if len(events) != 1 || events[0].Kind != varve.EventEvicted || events[0].Writer.Agent != "two" {
		t.Errorf("%+v", events)
	}
	for c, err := range st.Log(ctx, varve.LogOptions{Deleted: true}) {
		fixture.Must(t, err)
		if c.Writer.Agent != "two" || len(c.Changes) != 1 || c.Changes[0].Cause != "evicted" {
			t.Errorf("%+v", c)
		}
	}
}

// Verify names a damaged line of wal/writers, and a repair rewrites the file with what log and archive
// have.
func TestWritersVerified(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, writerOptions("one"))
	for i := range 3 {
		_, err := st.Put(varve.WithWriter(ctx, varve.Writer{Agent: fmt.Sprint("agent", i)}), varve.Memory{Content: "x"})
		fixture.Must(t, err)
	}
	for range 2 {
		fill(t, st, 300)
		fixture.Must(t, st.Admin().Compact(ctx))
	}
	found := func() (list []repair.Finding) {
		t.Helper()
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			fixture.Must(t, err)
			if f.Kind == repair.WritersDamaged {
				list = append(list, f)
			}
		}
		return list
	}
	if list := found(); len(list) > 0 {
		t.Fatal(list)
	}
	path := filepath.Join(dir, "wal", "writers")
	sound := fixture.ReadBytes(t, path)
	storetest.Rewrite(t, path, func(b []byte) []byte { b[bytes.IndexByte(b, '\n')-4] ^= 1; return b })
	if list := found(); len(list) != 1 || list[0].Severity != repair.Info {
		t.Errorf("log and archive have it: %v", list)
	}
	archived, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst"))
	fixture.Must(t, err)
	if len(archived) == 0 {
		t.Fatal("nothing is archived")
	}
	fixture.Must(t, os.Remove(archived[0]))
	if list := found(); len(list) != 1 || list[0].Severity != repair.Healable ||
		!strings.Contains(list[0].Err.Error(), "line 1") || list[0].Next == "" {
		t.Errorf("it is lost: %v", list)
	}
	fixture.Must(t, st.Close())
	plan, err := varve.PlanRepair(ctx, dir, writerOptions("repair"), varve.VerifyOptions{})
	fixture.Must(t, err)
	report, err := plan.Apply(ctx)
	fixture.Must(t, err)
	if len(report.Remaining) > 0 {
		t.Error(report.Remaining)
	}
	st = fixture.Open(t, dir, writerOptions("one"))
	if list := found(); len(list) > 0 {
		t.Errorf("after the repair: %v", list)
	}
	lines := func(b []byte) int { return bytes.Count(b, []byte("\n")) }
	if b := fixture.ReadBytes(t, path); lines(b) != lines(sound)-1 {
		t.Errorf("%d lines are left of %d", lines(b), lines(sound))
	}
}

package purges

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
)

// Documents of others that only resemble a purged memory by name, or mention it, stay, byte for byte.
func TestPurgeSparesOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.ClockAt(time.Now())
	o := &varve.Options{Clock: clock.Now, NoBackground: true}
	st := fixture.Open(t, dir, o)
	expires := clock.Now().Add(time.Hour)
	for _, m := range []varve.Memory{{ID: "journal", Content: "forget"},
		{ID: "my-journal", Content: "mine", ExpiresAt: expires}, {ID: "b", Content: "stays"}} {
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	clock.Add(2 * time.Hour) // my-journal has expired, and is there
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, o.Clock)
	others := []string{filepath.Join(dir, "memories", "my-journal.json")}
	set := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "memories", name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		others = append(others, path)
	}
	set("README.md", "this folder is my journal")
	set("new.json", `{"content":"not adopted yet; see memory journal"}`)
	set("work-journal.json", `{"content":"likewise"}`)
	set("half.json", "{\n  \"id\": \"half\",\n  \"content\": \"my journal says") // somebody is at it
	for name, text := range map[string]string{"b.json": "{\"id\": \"b\", \"content\": \"the journal\" <<<<<<<",
		"my-journal.json": "{broken"} {
		where, err := q.Bytes(name, []byte(text), docfile.Note{Why: "it is not valid JSON", From: "memories/" + name})
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, filepath.Join(dir, where), filepath.Join(dir, where+".note.json"))
	}
	want := map[string]string{}
	for _, path := range others {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want[path] = string(b)
	}
	if _, err := st.Admin().Purge(ctx, "journal"); err != nil {
		t.Fatal(err)
	}
	for path, text := range want {
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

// A parked file with a second name, such as that of a snapshot by hard links, also belongs to the
// snapshot.
func TestPurgeSparesSecondNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parked, snapshot := filepath.Join(dir, "tmp", "parked"), filepath.Join(dir, "snapshot.json")
	name := filepath.Join(parked, "memories@a.json@20@0@0@x-1")
	text := `{"id": "a", "content": "x"}`
	if err := errors.Join(os.MkdirAll(parked, 0o700), os.WriteFile(snapshot, []byte(text), 0o600),
		os.Link(snapshot, name)); err != nil {
		t.Fatal(err)
	}
	removed, held, err := trace.PurgeParked(nil, dir, trace.Of(kind.Memories, []string{"a"}), trace.Options{FS: vfs.OS()})
	if err != nil || len(removed) != 1 || len(held) != 0 {
		t.Fatal(removed, held, err)
	}
	if b, err := os.ReadFile(snapshot); err != nil || string(b) != text {
		t.Errorf("the snapshot: %q, %v", b, err)
	}
}

// A parked file that only mentions a purged memory is reported under the folder in which the user finds
// it.
func TestPurgeNamesParked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "tmp", "parked", "notes.txt@20@0@0@x-1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
		os.WriteFile(name, []byte("torn: see the journal of monday"), 0o600)); err != nil {
		t.Fatal(err)
	}
	set := trace.Of(kind.Memories, []string{"journal"})
	removed, held, err := trace.PurgeParked(nil, dir, set, trace.Options{FS: vfs.OS()})
	if err != nil || len(removed) != 0 || len(held) != 0 {
		t.Fatal(removed, held, err)
	}
	if u := set.Unread(); len(u) != 1 || u[0].Path != "tmp/parked/notes.txt@20@0@0@x-1" {
		t.Errorf("%+v", u)
	}
}

// A piece of the log that was set aside also has other memories, perhaps as their only copy: that it
// mentions a word is no reason to destroy it.
func TestPurgeLeavesPiecesThatMention(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "journal", Content: "forget"}); err != nil {
		t.Fatal(err)
	}
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
	text := "frames of b, which says: see the journal of monday"
	where, err := q.Bytes("00000001.wal", []byte(text), docfile.Note{Why: "it is damaged", From: "wal/00000001.wal"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := st.Admin().Purge(ctx, "journal")
	var left *varve.CorruptionError
	if !errors.As(err, &left) || filepath.Join(dir, left.Path) != filepath.Join(dir, where) || len(r.Left) != 1 {
		t.Errorf("left %v, %v", r.Left, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, where)); err != nil || string(b) != text {
		t.Errorf("it is %q now, %v", b, err)
	}
}

// An unknown id is distinguished from a deleted one, and from one of which only a trace is left.
func TestUnknown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"there", "deleted"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(st.Delete(ctx, "deleted"), st.Flush(ctx),
		os.WriteFile(filepath.Join(dir, "memories", "stands.json"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
	if _, err := q.Bytes("aside.json", []byte("{"),
		docfile.Note{Why: "it is not valid JSON", From: "memories/aside.json"}); err != nil {
		t.Fatal(err)
	}
	got, err := st.Admin().Unknown(ctx, "there", "tehre", "deleted", "delete", "stands", "aside", "tehre")
	if err != nil || len(got) != 2 || got[0] != "tehre" || got[1] != "delete" {
		t.Errorf("%v, %v", got, err)
	}
}

// A user's own files in the folder stay, and those with data of a purged memory are named, in whatever
// folder, even if they have only some of its content.
func TestPurgeNamesWhatMentions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	first := "The code of the safe is \"4711\", behind the picture of grandmother.\n"
	for _, m := range []varve.Memory{{ID: "journal", Content: first},
		{ID: "journal", Content: "something else, and not to be met by chance either"}, {ID: "b", Content: "stays"}} {
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"export.csv":                   "id,content\n1,\"" + strings.ReplaceAll(first, `"`, `""`) + "\"",
		"old/deep/copy of journal.txt": "so it began: " + first,
		"old/escaped.txt":              `{"said":"picture of grandmother.\n behind the picture of grandmother.\n"}`,
		"old/innocent.txt":             "nothing of it",
		"memories/mine/notes.txt":      "see memory journal",
		"memories/mine/other.json":     `{"id": "other"}`,
		"backups/mine.txt":             "journal",
		"assemblies/a.json":            `{"assembly_id": "a", "memory_ids": ["journal"]}`,
		"journal.json.bak":             "a copy",
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	large := filepath.Join(dir, "old", "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 65<<20)); err != nil {
		t.Fatal(err)
	}
	r, err := st.Admin().Purge(ctx, "journal")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range r.Mentions {
		got[m.Path] = m.How
	}
	for name, how := range map[string]string{
		"export.csv": "contains purged text", "old/deep/copy of journal.txt": "contains purged text",
		"memories/mine/notes.txt": "contains the purged id",
		"backups/mine.txt":        "contains the purged id", "assemblies/a.json": "contains the purged id",
		"journal.json.bak": "is named after the purged id",
		"old/large":        "was not searched: larger than 64 MiB",
	} {
		if got[name] != how {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	for _, name := range []string{"old/innocent.txt", "memories/mine/other.json", "memories/b.json"} {
		if how, ok := got[name]; ok {
			t.Errorf("%s: %q", name, how)
		}
	}
	for name, text := range files {
		if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

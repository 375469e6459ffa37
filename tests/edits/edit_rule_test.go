package edits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// outcome is the result of an edit of a file by hand.
type outcome struct {
	Content string
	Err     string
	Created string // "memory's", "mtime" or the time itself
	Updated string // "adoption", "memory's", "mtime" or the time itself
	Refused int
	File    string // "same", "another" or "none"
}

// TestEditRule makes each edit once while a process watches and once while none does, and compares the
// results, also after the index is rebuilt.
func TestEditRule(t *testing.T) {
	t.Parallel()
	mtime := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	replace := func(from, to string) func(string) string {
		return func(text string) string {
			if !strings.Contains(text, from) {
				t.Errorf("%q is not in %s", from, text)
			}
			return strings.Replace(text, from, to, 1)
		}
	}
	without := func(text string) string {
		var kept []string
		for _, line := range strings.Split(text, "\n") {
			if !strings.Contains(line, `"created_at"`) && !strings.Contains(line, `"updated_at"`) {
				kept = append(kept, line)
			}
		}
		return strings.Replace(strings.Join(kept, "\n"), ": 0,\n}", ": 0\n}", 1)
	}
	text := replace("text of m0", "edited")
	for _, c := range []struct {
		name    string
		edit    func(text string) string // of m0; nil: none
		file    string                   // a new one, of new.json
		remove  int                      // files of m0, m1 ...
		restore bool                     // config.json does not adopt deletions
		read    string
		want    outcome
	}{
		{name: "text", edit: text, read: "m0",
			want: outcome{Content: "edited", Created: "memory's", Updated: "adoption", File: "same"}},
		{name: "without times", edit: func(s string) string { return without(text(s)) }, read: "m0",
			want: outcome{Content: "edited", Created: "memory's", Updated: "adoption", File: "same"}},
		{name: "a later time", edit: func(s string) string {
			return replace(`"updated_at": "2`, `"updated_at": "3`)(text(s))
		}, read: "m0",
			want: outcome{Content: "edited", Created: "memory's", Updated: "adoption", File: "same"}},
		{name: "another creation", edit: func(s string) string {
			return replace(`"created_at": "20`, `"created_at": "19`)(text(s))
		}, read: "m0",
			want: outcome{Content: "edited", Created: "memory's", Updated: "adoption", File: "same"}},
		{name: "an older time", edit: func(s string) string {
			return replace(`"updated_at": "20`, `"updated_at": "19`)(text(s))
		}, read: "m0",
			want: outcome{Content: "text of m0", Created: "memory's", Updated: "memory's", File: "another"}},
		{name: "no JSON", edit: replace(`"content"`, `"content`), read: "m0",
			want: outcome{Content: "text of m0", Created: "memory's", Updated: "memory's", Refused: 1, File: "same"}},
		{name: "merge", edit: func(s string) string { return "<<<<<<< HEAD\n" + s + "\n=======\n" + s + "\n>>>>>>> other\n" },
			read: "m0",
			want: outcome{Content: "text of m0", Created: "memory's", Updated: "memory's", Refused: 1, File: "same"}},
		{name: "another id", edit: replace(`"id": "m0"`, `"id": "x"`), read: "m0",
			want: outcome{Content: "text of m0", Created: "memory's", Updated: "memory's", Refused: 1, File: "same"}},
		{name: "new", file: `{"id":"new","content":"made"}`, read: "new",
			want: outcome{Content: "made", Created: "mtime", Updated: "mtime", File: "same"}},
		{name: "new with times",
			file: `{"id":"new","content":"made","created_at":"2001-02-03T04:05:06Z","updated_at":"2002-02-03T04:05:06Z"}`,
			read: "new",
			want: outcome{Content: "made", Created: "2001-02-03T04:05:06Z", Updated: "2002-02-03T04:05:06Z", File: "same"}},
		{name: "deleted", remove: 1, read: "m0", want: outcome{Err: varve.ErrNotFound.Error(), File: "none"}},
		{name: "deleted, to be restored", remove: 1, restore: true, read: "m0",
			want: outcome{Content: "text of m0", Created: "memory's", Updated: "memory's", File: "same"}},
		{name: "emptied", remove: 6, read: "m5",
			want: outcome{Content: "text of m5", Created: "memory's", Updated: "memory's", File: "same"}},
	} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, " watched ", watched), func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				dir := t.TempDir()
				ahead := func() time.Time { return time.Now().Add(time.Hour) } // the folder has not changed for a while
				heard := make(chan varve.Event, 1000)
				st := fixture.Open(t, dir, &varve.Options{NoBackground: !watched, WatchFiles: watched, Clock: ahead, CacheBytes: -1,
					Listener: func(e varve.Event) {
						select {
						case heard <- e:
						default:
						}
					}})
				was := map[string]varve.Memory{}
				for i := range 6 {
					m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text of m", i)})
					if err != nil {
						t.Fatal(err)
					}
					was[m.ID] = m
				}
				if c.restore {
					if err := st.Admin().UpdateConfig(ctx,
						func(c *varve.Config) error { no := false; c.AdoptDeletions = &no; return nil }); err != nil {
						t.Fatal(err)
					}
				}
				if err := st.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				if watched {
					fixture.WaitFor(t, func() bool { return st.Admin().Stats().Watcher != 0 })
					for e := range heard {
						if e.Kind == varve.EventWatching {
							break
						}
					}
				}
				path := func(id string) string { return filepath.Join(dir, "memories", id+".json") }
				before, err := os.ReadFile(path(c.read))
				if err != nil && c.file == "" {
					t.Fatal(err)
				}
				save := func(id, text string) {
					before = []byte(text)
					if err := errors.Join(os.WriteFile(filepath.Join(dir, "saved"), before, 0o600),
						os.Chtimes(filepath.Join(dir, "saved"), mtime, mtime),
						os.Rename(filepath.Join(dir, "saved"), path(id))); err != nil {
						t.Fatal(err)
					}
				}
				start := ahead()
				if c.edit != nil {
					save("m0", c.edit(string(before)))
				}
				if c.file != "" {
					save("new", c.file)
				}
				for i := range c.remove {
					if err := os.Remove(path(fmt.Sprint("m", i))); err != nil {
						t.Fatal(err)
					}
				}
				if !watched && c.file != "" {
					repairAll(t, dir, ahead)
				}
				look := func() (o outcome) {
					m, err := st.Get(ctx, c.read)
					if o.Content = m.Content; err != nil {
						o.Err = "another error: " + err.Error()
						if errors.Is(err, varve.ErrNotFound) {
							o.Err = varve.ErrNotFound.Error()
						}
					} else {
						name := func(at, own time.Time) string {
							switch {
							case at.Equal(own):
								return "memory's"
							case at.Equal(mtime):
								return "mtime"
							case !at.Before(start.Truncate(time.Microsecond)) && !at.After(ahead()):
								return "adoption"
							}
							return at.Format(time.RFC3339)
						}
						o.Created, o.Updated = name(m.CreatedAt, was[c.read].CreatedAt), name(m.UpdatedAt, was[c.read].UpdatedAt)
					}
					for _, err := range st.Admin().RefusedEdits(ctx) {
						if o.Refused++; err != nil {
							t.Error(err)
						}
					}
					now, err := os.ReadFile(path(c.read))
					switch {
					case err != nil:
						o.File = "none"
					case string(now) == string(before):
						o.File = "same"
					default:
						o.File = "another"
					}
					return o
				}
				got := look()
				if watched {
					for end := time.Now().Add(20 * time.Second); got != c.want && time.Now().Before(end); got = look() {
						time.Sleep(10 * time.Millisecond)
					}
				}
				if got != c.want {
					t.Fatalf("%+v\nwant %+v", got, c.want)
				}
				if c.want.Refused > 0 {
					return
				}
				if err := st.Admin().RebuildIndex(ctx); err != nil {
					t.Fatal(err)
				}
				if got := look(); got != c.want {
					t.Errorf("after a rebuild of the index: %+v\nwant %+v", got, c.want)
				}
				for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
					if err != nil || f.Severity > varve.SeverityInfo {
						t.Errorf("%+v %v", f, err)
					}
				}
			})
		}
	}
}

// repairAll applies the plan of a repair.
func repairAll(t *testing.T, dir string, clock func() time.Time) {
	t.Helper()
	plan, err := varve.PlanRepair(t.Context(), dir, &varve.Options{Clock: clock}, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

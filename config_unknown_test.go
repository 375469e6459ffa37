package varve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/wal"
)

// spoil are the ways in which a config.json loses what its user has set.
var spoil = map[string]func(name string, text []byte) error{
	"mark": func(name string, text []byte) error {
		return os.WriteFile(name, append([]byte("\xef\xbb\xbf"), text...), 0o600)
	},
	"empty":   func(name string, _ []byte) error { return os.WriteFile(name, nil, 0o600) },
	"half":    func(name string, text []byte) error { return os.WriteFile(name, text[:len(text)/2], 0o600) },
	"missing": func(name string, _ []byte) error { return os.Remove(name) },
	"foreign": func(name string, text []byte) error {
		return os.WriteFile(name, []byte(strings.Replace(string(text), `"varve"`, `"warve"`, 1)), 0o600)
	},
	"member": func(name string, text []byte) error {
		return os.WriteFile(name, []byte(strings.Replace(string(text), "{", `{"max_depth":"x",`, 1)), 0o600)
	},
	"link": func(name string, text []byte) error {
		other := name + ".elsewhere"
		return errors.Join(os.Remove(name), os.WriteFile(other, text, 0o600), os.Symlink(filepath.Base(other), name))
	},
}

// TestConfigUnknown verifies that while config.json cannot be read, or is missing in a store that had one, neither the
// defaults nor the last good settings remove anything: no history, no memory by its age or to make room, no index
// backup, and no missing file is a deletion. Reading and writing continue, Health reports the state, and what is due is
// removed once the file is valid.
func TestConfigUnknown(t *testing.T) {
	t.Parallel()
	for how, broken := range spoil {
		for _, opened := range []string{"before", "after"} {
			t.Run(how+"/"+opened, func(t *testing.T) {
				t.Parallel()
				ctx, dir := t.Context(), t.TempDir()
				c := fixture.ClockAt(time.Now().Add(time.Hour))
				var heard []varve.Event
				listen := func(e varve.Event) { heard = append(heard, e) }
				o := c.On(&varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: c.Tick, Listener: listen})
				storetest.Of(o).System.SpillBytes = 64 << 10
				storetest.Of(o).System.ArchiveBytes = 1 << 10 // what the default would leave
				st := fixture.Open(t, dir, o)
				large, no := int64(1<<40), false
				if err := st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
					c.HistoryBytes, c.AdoptDeletions = &large, &no
					c.MaxAge, c.MaxMemories, c.AtLimit = 7200, 100, varve.AtLimitEvictOldest
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				random := rand.New(rand.NewPCG(1, 2))
				write := func(n int) {
					t.Helper()
					for i := range n {
						text := make([]byte, 1500)
						for j := range text {
							text[j] = 'a' + byte(random.IntN(26))
						}
						if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: string(text)}); err != nil {
							t.Fatal(err)
						}
						if i%50 == 49 {
							if err := st.Admin().Compact(ctx); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				for range 4 {
					write(100)
				}
				before := st.Admin().Stats()
				if before.HistoryBytes < 200<<10 || before.Memories != 100 {
					t.Fatalf("%+v", before)
				}
				name := filepath.Join(dir, settings.Name)
				right, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if opened == "after" {
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := broken(name, right); err != nil {
					t.Fatal(err)
				}
				if opened == "after" {
					st = fixture.Open(t, dir, o)
				}
				gone := filepath.Join(dir, "memories", "k7.json")
				if err := os.Remove(gone); err != nil {
					t.Fatal(err)
				}
				heard = nil
				if _, err := st.Put(ctx, varve.Memory{ID: "one too many", Content: "x"}); err != nil {
					t.Errorf("a put at the limit: %v", err)
				}
				for range 4 { // everything is older than max_age, and the folder is quiet enough for adopt_deletions
					c.Add(3 * time.Hour)
					if err := errors.Join(st.Flush(ctx), st.Admin().Compact(ctx)); err != nil {
						t.Fatal(err)
					}
				}
				if m, err := st.Get(ctx, "k7"); err != nil || m.Content == "" {
					t.Errorf("the memory whose file is gone: %v", err)
				}
				if n, err := st.Count(ctx); n != 101 || err != nil {
					t.Errorf("%d memories, %v", n, err)
				}
				if s := st.Admin().Stats(); s.HistoryBytes < before.HistoryBytes {
					t.Errorf("%d bytes of history are left of %d", s.HistoryBytes, before.HistoryBytes)
				}
				for _, e := range heard {
					switch e.Kind {
					case varve.EventSwept, varve.EventEvicted, varve.EventArchiveOld, varve.EventArchiveCut, varve.EventDeleted:
						t.Errorf("%+v", e)
					}
				}
				if h := st.Health(ctx); !h.SettingsUnknown || h.OK || !h.Writable {
					t.Errorf("%+v", h)
				}
				if _, err := os.Lstat(name); how == "missing" && err == nil {
					t.Error("a config.json was made of the defaults")
				}
				// No part of the store that writes the file by itself makes it valid with defaults that would remove
				// data.
				if how != "member" {
					err := storetest.Inner(st).Embedding.UpdateVectors(ctx, func(v *settings.VectorConfig) { v.Model = "x" })
					if err == nil && opened == "after" {
						b, _ := os.ReadFile(name)
						t.Errorf("it was written without what it said: %s", b)
					}
				}
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, right, 0o600); err != nil {
					t.Fatal(err)
				}
				c.Add(time.Second)
				if err := st.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				if h := st.Health(ctx); h.SettingsUnknown {
					t.Errorf("it is right again: %v", h.Problems)
				}
				for range 4 {
					c.Add(3 * time.Hour)
					if err := st.Flush(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := st.Count(ctx); n != 0 || err != nil {
					t.Errorf("max_age left %d memories, %v", n, err)
				}
			})
		}
	}
}

// TestConfigUnknownSet verifies that a change of the settings does not write the default of an invalid member if the
// default would remove data, and that the error names the member to set.
func TestConfigUnknownSet(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	name := filepath.Join(dir, settings.Name)
	for _, member := range []string{`"history_bytes":"1 GiB"`, `"adopt_deletions":"no"`, `"index_backup_count":-1`} {
		text := []byte(`{"varve":1,` + member + `}`)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		field, _, _ := strings.Cut(strings.Trim(member, `"`), `"`)
		err := st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.MaxDepth = 50; return nil })
		b, _ := os.ReadFile(name)
		if err == nil || !strings.Contains(err.Error(), "set "+field) || string(b) != string(text) {
			t.Errorf("%s: %v: %s", member, err, b)
		}
		n, yes, count := int64(1<<30), false, 5
		if err := st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
			c.HistoryBytes, c.AdoptDeletions, c.IndexBackupCount = &n, &yes, &count
			return nil
		}); err != nil {
			t.Errorf("%s, set: %v", member, err)
		}
		if h := st.Health(ctx); h.SettingsUnknown {
			t.Error(h.Problems)
		}
	}
}

// TestConfigRecorded verifies that the checkpoint records that a store has had a config.json, for an older store from
// its first open on. A store without that record gets the file.
func TestConfigRecorded(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	recorded := func() bool {
		t.Helper()
		c, err := wal.ReadCheckpoint(storetest.Of(filled()).System.FS, dir)
		if err != nil {
			t.Fatal(err)
		}
		return c.Config
	}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if !recorded() {
		t.Error("of a new store it is not recorded")
	}
	fixture.Alter(t, filepath.Join(dir, "checkpoint"), func(b []byte) []byte { // as older programs write it
		for _, slot := range []int{0, 4096} {
			clear(b[slot+176 : slot+192])
		}
		return b
	})
	if recorded() {
		t.Error("it is still recorded")
	}
	name := filepath.Join(dir, settings.Name)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := fixture.Open(t, dir, &varve.Options{NoBackground: true}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil || !recorded() {
		t.Errorf("an older store without the file: %v, recorded %v", err, recorded())
	}
	fixture.Alter(t, filepath.Join(dir, "checkpoint"), func(b []byte) []byte {
		for _, slot := range []int{0, 4096} {
			clear(b[slot+176 : slot+192])
		}
		return b
	})
	if err := fixture.Open(t, dir, &varve.Options{NoBackground: true}).Close(); err != nil || !recorded() {
		t.Errorf("opened once: %v, recorded %v", err, recorded())
	}
}

// filled returns the options of a store on this machine.
func filled() *varve.Options {
	o := new(varve.Options)
	o.Fill()
	return o
}

package varve

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is purged is in no version of an assembly either: that would have its id,
// and a composite made of its embedding.
func TestPurgeMember(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	clock := clockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	st := openTest(t, dir, &Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock.now})
	const secret = "the-secret-one"
	put(t, st, secret, 3, 4)
	put(t, st, "other", 1, 0)
	group(t, st, "alone", secret)
	group(t, st, "both", "other", secret)
	group(t, st, "neither", "other")
	for i := range 12 { // into archive and index backups
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("f", i), Content: strings.Repeat(fmt.Sprint(i, " "), 8000)}); err != nil {
			t.Fatal(err)
		}
		clock.add(time.Hour)
		if err := st.Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"alone", "neither"} {
		if _, err := st.Assemblies().Activate(ctx, id, 0.5); err != nil {
			t.Fatal(err)
		}
	}
	versions := func(id string) (members [][]string) {
		for v, err := range st.Assemblies().History(ctx, id) {
			if err != nil {
				t.Fatal(err)
			}
			a, err := v.DecodeAssembly()
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, a.MemoryIDs)
		}
		return members
	}
	if v := versions("alone"); len(v) != 2 {
		t.Fatalf("before: %q", v)
	}
	r, err := st.Purge(ctx, secret)
	if err != nil || !slices.Equal(r.Deleted, []string{secret}) || r.Backups == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if v := versions("alone"); len(v) != 1 || len(v[0]) != 0 {
		t.Errorf("alone: %q", v)
	}
	if v := versions("both"); len(v) != 1 || !slices.Equal(v[0], []string{"other"}) {
		t.Errorf("both: %q", v)
	}
	if v := versions("neither"); len(v) != 2 {
		t.Errorf("the history of an assembly that never had it: %q", v)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range st.Verify(ctx, VerifyOptions{}) {
		if err != nil || f.Severity != SeverityInfo {
			t.Errorf("%s %v", f.String(), err)
		}
	}
}

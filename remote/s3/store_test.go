package s3_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// TestStoreInBucket: a store that is sent to a bucket is cloned from there with its documents, byte for byte.
func TestStoreInBucket(t *testing.T) {
	t.Parallel()
	ctx, dir, b := t.Context(), t.TempDir(), newBucket(t)
	o := &varve.Options{StateDir: filepath.Join(dir, "state"), SegmentSize: 64 << 10, NoBackground: true}
	store, clone := filepath.Join(dir, "store"), filepath.Join(dir, "clone")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := b.create("notes")
	st, err := varve.Open(ctx, store, o)
	check(err)
	put := func(n int) {
		t.Helper()
		_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("m%d", n%20), Content: fmt.Sprintf("%d %0256d", n, n)})
		check(err)
	}
	for n := range 50 {
		put(n)
	}
	check(st.Admin().Offsite().Add(ctx, r, r.Place()))
	for n := range 500 {
		put(1000 + n)
	}
	check(st.Admin().Offsite().Send(ctx, r))
	check(st.Close())
	report, err := varve.Clone(ctx, b.open("notes"), clone, &varve.CloneOptions{Options: o})
	check(err)
	if report.Memories != 20 {
		t.Errorf("%+v", report)
	}
	check(filepath.WalkDir(filepath.Join(store, "memories"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(store, path)
		want, werr := os.ReadFile(path)
		got, gerr := os.ReadFile(filepath.Join(clone, rel))
		if werr != nil || gerr != nil || string(got) != string(want) {
			t.Errorf("%s differs: %v, %v", rel, werr, gerr)
		}
		return nil
	}))
}

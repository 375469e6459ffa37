package repair_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A background round flushes a part of what is due, by the newest versions: it skips a version that was
// replaced or deleted since, and whose file still holds the one before. Such a file is not damaged; the
// next round writes it.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	const others = flush.QuietFiles
	const before = 5000 // an index that each round would write has all of them
	round := int64(before + others + 6)
	o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{Inline: true, Rounds: round}})
	st := openStore(t, filepath.Join(t.TempDir(), "s"), o)
	say := func(id, content string) {
		t.Helper()
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range before {
		say(fmt.Sprint("before", i), "text")
	}
	say("replaced", "one")
	say("deleted", "one")
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	say("replaced", "two")
	say("deleted", "two")
	for i := range others {
		say(fmt.Sprint("other", i), "text")
	}
	say("replaced", "three")
	if err := st.Delete(t.Context(), "deleted"); err != nil { // commit number round
		t.Fatal(err)
	}
	s := st.Admin().Stats()
	if m, err := st.Get(t.Context(), "other0"); err != nil || s.Flushed <= m.Version || s.Unflushed == 0 {
		t.Fatalf("the round has not taken a part: %v, flushed %d, left %d", err, s.Flushed, s.Unflushed)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

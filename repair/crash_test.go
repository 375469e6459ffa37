package repair_test

import (
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/repair"
)

// TestAfterCrash: entries above flushed may be anything after an unclean end, and are not judged;
// entries below are.
func TestAfterCrash(t *testing.T) {
	t.Parallel()
	_, live := store(t)
	dir := filepath.Join(t.TempDir(), "crashed")
	fixture.CopyDir(t, live, dir)
	write(t, file(dir, memoryPath(settled+unspilt+3)), []byte("half a round"))
	flip(t, file(dir, memoryPath(7)), 30)
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	if st.Admin().OpenReport().Clean {
		t.Fatal("it opened cleanly")
	}
	rot := want{repair.MemoryRot, memoryPath(7), 30, repair.ByArchive, repair.Healable}
	var found []varve.Finding
	for _, f := range verify(t, st, varve.VerifyOptions{}) {
		if f.Kind != repair.Leftover { // the temp files of the crashed process
			found = append(found, f)
		}
	}
	check(t, found, []want{rot})
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, verify(t, st, varve.VerifyOptions{}), []want{rot, {repair.Quarantined, "quarantine", -1, "", repair.Info}})
}

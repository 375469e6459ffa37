package notes

import (
	"errors"
	"os"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
)

// TestStoreInNotes: the files of another store in the folder of notes, such as one in an adopted folder, are no notes:
// only that store writes them. What it deletes does not come back, and nothing is wrong with it.
func TestStoreInNotes(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	st := watched(t, dir)
	must(t, st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
		no := false
		c.AdoptDeletions = &no
		return nil
	}))
	write(t, st, "vault/a.md", "one")
	must(t, st.Flush(ctx))
	inner, err := varve.Open(ctx, at(dir, "vault/project/memory"), nil)
	must(t, err)
	put := func(id string) {
		t.Helper()
		_, err := inner.Put(ctx, varve.Memory{ID: id, Content: "of the inner store"})
		must(t, err)
		must(t, inner.Flush(ctx))
	}
	put("gone")
	put("stays")
	must(t, os.Mkdir(at(dir, "vault/cloned"), 0o700)) // git has neither the log nor the index of a store
	config, err := os.ReadFile(at(dir, "vault/project/memory/config.json"))
	must(t, err)
	save(t, at(dir, "vault/cloned/config.json"), string(config))
	save(t, at(dir, "vault/cloned/memories/x.json"), "{}")
	save(t, at(dir, "vault/site/config.json"), "{}")
	save(t, at(dir, "vault/last.md"), "adopted last")
	await(t, st, "vault/last.md", "adopted last")
	_, err = st.Notes().AdoptFiles(ctx, "")
	must(t, err)
	must(t, inner.Delete(ctx, "gone"))
	must(t, inner.Close())
	_, err = st.Notes().AdoptFiles(ctx, "")
	must(t, err)
	expect(t, st, map[string]string{"vault/a.md": "one", "vault/last.md": "adopted last", "vault/site/config.json": "{}"})
	counts := map[varve.LeftOutReason]int{}
	for l, err := range st.Notes().LeftOut(ctx) {
		must(t, err)
		if counts[l.Why]++; !strings.HasPrefix(l.Path, "notes/vault/project/memory/") &&
			!strings.HasPrefix(l.Path, "notes/vault/cloned/") {
			t.Errorf("%+v", l)
		}
	}
	if counts[varve.LeftOutStore] < 5 {
		t.Errorf("%v", counts)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("%+v, %v", f, err)
	}
	must(t, st.Close())
	inner, err = varve.Open(ctx, at(dir, "vault/project/memory"), nil)
	must(t, err)
	defer inner.Close()
	if _, err := inner.Get(ctx, "gone"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("what the inner store has deleted is back: %v", err)
	}
	if _, err := inner.Get(ctx, "stays"); err != nil {
		t.Error(err)
	}
	for f, err := range inner.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("%+v, %v", f, err)
	}
}

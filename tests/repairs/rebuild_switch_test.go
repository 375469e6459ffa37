package repairs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A store whose index and its backups are lost in the middle of a change of the model is rebuilt from
// its documents, of which some have vectors of the older model: these are not used among the others.
func TestRebuildAmidSwitch(t *testing.T) {
	t.Parallel()
	t.Run("index", func(t *testing.T) { rebuildAmidSwitch(t, false) })
	t.Run("index and log", func(t *testing.T) { rebuildAmidSwitch(t, true) })
}

func rebuildAmidSwitch(t *testing.T, log bool) {
	ctx := context.Background()
	dir := t.TempDir()
	was, is := fixture.ModelOf("old", 3), fixture.ModelOf("new", 3)
	models := map[string]func(string) []float32{"old": was, "new": is}
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(was))
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "old"})
	for i := range 10 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	open := func() *varve.Store {
		return fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 2})
	}
	e.Set(fixture.AnswerBy(is))
	st = open()
	ended, end := context.WithCancel(ctx)
	if _, err := st.Vectors().Reembed(ended, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written > 3 {
			end()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if by, why := fixture.ModelServed(t, st, models); by != "new" {
		t.Fatal(why)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "memory_index") {
			return os.Remove(path)
		}
		return err
	})
	if err == nil {
		err = os.RemoveAll(filepath.Join(dir, "backups"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if log {
		if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
			t.Fatal(err)
		}
	}
	st = open()
	if by, why := fixture.ModelServed(t, st, models); by != "new" && !log {
		t.Error(why)
	}
	if told := strings.Contains(fmt.Sprint(st.Admin().OpenReport().Problems), "memctl reindex"); told != log {
		t.Errorf("told: %v, %+v", told, st.Admin().OpenReport().Problems)
	}
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(r, err)
	}
	if by, why := fixture.ModelServed(t, st, models); by != "new" {
		t.Error(why)
	}
	for m, err := range st.Memories(ctx) {
		if err != nil || fmt.Sprint(m.Embedding) != fmt.Sprint(is(m.Content)) {
			t.Errorf("%s has %v, %v", m.ID, m.Embedding, err)
		}
	}
}

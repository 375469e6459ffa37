package purges

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// The names in a folder in tmp/ that could not be removed return after a loss of power, unless the
// folder was synced without them. (Found by TestPurgeCut, every operation of it: VARVE_STEP=1
// VARVE_CUT=917 go test ./tests/purges -run TestPurgeCut/error.)
func TestPurgeSyncsNames(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, _ := fixture.Filled(t)
	st, err := varve.Open(ctx, "/s", r.Options(2))
	if err != nil {
		t.Fatal(err)
	}
	s := secretive(t, st, 1)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	r = r.Lose(crash.KeepAll, 1)
	o := r.Options(3)
	refused := 0
	storetest.Of(o).System.FS = wrap.New(storetest.Of(o).System.FS, func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Remove && filepath.Dir(op.Path) == "/s/tmp" && len(filepath.Base(op.Path)) == 16 {
			refused++
			return errors.New("injected")
		}
		return call()
	})
	if st, err = varve.Open(ctx, "/s", o); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Admin().Purge(ctx, s.ids...); err != nil {
		t.Fatal(err)
	}
	if refused == 0 {
		t.Fatal("no folder was to be removed")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	r = r.Lose(crash.LoseAll, 1)
	for _, where := range s.traces(t, storetest.Of(r.Options(4)).System.FS, "/s") {
		if !strings.HasPrefix(where, "/s/wal/") {
			t.Error(where)
		}
	}
}

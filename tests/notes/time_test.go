package notes

import (
	"path/filepath"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// TestWriteAt: content that was written earlier has that time, also after a flush and in a store that is opened again.
func TestWriteAt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "storage")
	st := opened(t, dir)
	old := time.Date(2019, 5, 6, 7, 8, 9, 123456000, time.UTC)
	i, err := st.Notes().WriteAt(t.Context(), "a", []byte("one"), old)
	must(t, err)
	if !i.UpdatedAt.Equal(old) || !i.CreatedAt.Equal(old) {
		t.Error(i)
	}
	older := old.Add(-time.Hour)
	i, err = st.Notes().WriteAt(t.Context(), "a", []byte("two"), older)
	must(t, err)
	if !i.UpdatedAt.Equal(older) || !i.CreatedAt.Equal(old) {
		t.Error(i)
	}
	future := time.Now().Add(time.Hour)
	if i, err = st.Notes().WriteAt(t.Context(), "b", []byte("x"), future); err != nil || !i.UpdatedAt.Before(future) {
		t.Error(i, err)
	}
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	st = opened(t, dir)
	n, err := st.Notes().Read(t.Context(), "a")
	must(t, err)
	if string(n.Content) != "two" || !n.UpdatedAt.Equal(older) {
		t.Errorf("%q %v", n.Content, n.UpdatedAt)
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

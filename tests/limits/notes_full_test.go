package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// TestFullDiskForNotes: on a full disk a write, a rename and the adoption of a file that a user has saved fail without
// a loss: what was acknowledged is there, a file that is not adopted stays, and with space everything works again.
func TestFullDiskForNotes(t *testing.T) {
	t.Parallel()
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		st, err := varve.Open(t.Context(), d.Dir, &d.O)
		fixture.Must(t, err)
		defer st.Close()
		ns, fsys := st.Notes(), storetest.Inner(st).Engine.Env().FS
		want := map[string]string{}
		for i := range 5 {
			path, text := fmt.Sprintf("d/%d.md", i), strings.Repeat(fmt.Sprintf("line of %d\n", i), 100)
			_, err := ns.Write(t.Context(), path, []byte(text))
			fixture.Must(t, err)
			want[path] = text
		}
		fixture.Must(t, st.Flush(t.Context()))
		saved := strings.Repeat("saved by hand\n", 1000)
		file, err := fsys.OpenFile(filepath.Join(d.Dir, "notes", "saved.md"), os.O_CREATE|os.O_WRONLY, 0o600)
		fixture.Must(t, err)
		_, err = file.WriteAt([]byte(saved), 0)
		fixture.Must(t, errors.Join(err, file.Close()))
		d.Fill(16 << 10)

		full := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, varve.ErrDiskFull) {
				t.Errorf("%s on a full disk: %v", what, err)
			}
		}
		for i := 0; err == nil && i < 10_000; i++ {
			path, text := fmt.Sprintf("more/%d.md", i), strings.Repeat("more\n", 1000)
			if _, err = ns.Write(t.Context(), path, []byte(text)); err == nil {
				want[path] = text
			}
		}
		full("a write", err)
		if _, err := ns.AdoptFiles(t.Context(), ""); err != nil {
			full("an adoption", err)
		}
		n, err := ns.Rename(t.Context(), "d", "renamed")
		if err != nil {
			full("a rename", err)
		} else if n != 5 {
			t.Errorf("%d notes renamed", n)
		}
		if err == nil {
			for i := range 5 {
				from := fmt.Sprintf("d/%d.md", i)
				want["renamed"+from[1:]] = want[from]
				delete(want, from)
			}
		}
		check := func(when string) {
			t.Helper()
			for path, text := range want {
				if n, err := ns.Read(t.Context(), path); err != nil || string(n.Content) != text {
					t.Errorf("%s: %s: %.40q, %v", when, path, n.Content, err)
				}
			}
		}
		check("on the full disk")
		d.Empty()
		for range 2000 { // a clock that moves by milliseconds
			d.O.Clock()
		}
		want["saved.md"] = saved
		_, err = ns.AdoptFiles(t.Context(), "")
		fixture.Must(t, err)
		fixture.Must(t, st.Flush(t.Context()))
		check("with space again")
		storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
	})
}

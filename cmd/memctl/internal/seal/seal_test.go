package seal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"github.com/varve-db/varve"
)

// breaking is a medium that cannot be read from a byte on.
type breaking struct {
	io.ReaderAt
	from int64
}

var errMedium = errors.New("the medium failed")

func (b breaking) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, errMedium
	}
	return b.ReaderAt.ReadAt(p, off)
}

// TestUnread verifies that a sealed file that cannot be read is not reported as damaged, and that a damaged one is.
func TestUnread(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(file, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sealTo, err := Recipients([]string{id.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	open, err := Identities(file)
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := sealTo(&sealed)
	if err == nil {
		_, err = w.Write(make([]byte, 200<<10))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.NewReader(sealed.Bytes())
	for _, from := range []int64{0, 30, b.Size() - 1} { // the header, and the last piece
		if _, _, err := open(breaking{b, from}, b.Size()); !errors.Is(err, errMedium) || errors.Is(err, varve.ErrCorrupt) {
			t.Errorf("broken from byte %d on: %v", from, err)
		}
	}
	plain, size, err := open(b, b.Size())
	if err != nil || size != 200<<10 {
		t.Fatal(size, err)
	}
	if n, err := plain.ReadAt(make([]byte, 100), 100<<10); n != 100 || err != nil {
		t.Error(n, err)
	}
	damaged := bytes.Clone(sealed.Bytes())
	damaged[len(damaged)-1] ^= 1
	if _, _, err := open(bytes.NewReader(damaged), b.Size()); !errors.Is(err, varve.ErrCorrupt) {
		t.Error(err)
	}
}

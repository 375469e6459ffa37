package backup

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
)

// TestInfoTooLarge verifies that a description that would be too large to be read is not written.
func TestInfoTooLarge(t *testing.T) {
	t.Parallel()
	info := repair.BackupInfo{Format: modelless, SegmentSize: segment.MinSize,
		Damaged: []repair.DamagedFile{{ID: "x", Why: "because"}}}
	b, err := encodeInfo(&info)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseInfo("x", b); err != nil {
		t.Fatal(err)
	}
	info.Damaged[0].Why = strings.Repeat("x", places.BackupMost)
	if _, err := encodeInfo(&info); !errors.Is(err, errs.ErrTooLarge) {
		t.Error(err)
	}
}

package sniff

import (
	"strings"
	"testing"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"\x1f\x8b\x08\x00": "gzip", "PK\x03\x04": "zip", "\xff\xfe{\x00": "UTF-16", "\xfe\xff\x00{": "UTF-16", "{\x00\"\x00i\x00": "UTF-16", "\x00{\x00\"": "UTF-16",
		"\xff\xfe\x00\x00{\x00\x00\x00": "UTF-32", "SQLite format 3\x00": "SQLite", "\x00\x00\x00\x00": "zero byte", "(\xb5/\xfd": "zstd",
	} {
		if err := Foreign([]byte(head)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", head, err, want)
		}
	}
	for _, head := range []string{"", "{", `{"id":1}`, "\xef\xbb\xbf{", "text", "é", " \n\t"} {
		if err := Foreign([]byte(head)); err != nil {
			t.Errorf("%q: %v", head, err)
		}
	}
}

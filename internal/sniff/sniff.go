package sniff

import (
	"bytes"
	"errors"
	"fmt"
)

// Longest is the number of bytes of a file that Foreign examines.
const Longest = 16

// kinds has the first bytes by which Foreign recognizes types of files. If the first bytes of one type begin with
// those of another type, the longer ones come first.
var kinds = []struct{ begin, name, remedy string }{
	{"\x1f\x8b", "gzip-compressed data", "unpack the file (gunzip)"},
	{"PK\x03\x04", "a zip archive", "unpack the file (unzip)"},
	{"(\xb5/\xfd", "zstd-compressed data", "unpack the file (unzstd)"},
	{"BZh", "bzip2-compressed data", "unpack the file (bunzip2)"},
	{"\xfd7zXZ\x00", "xz-compressed data", "unpack the file (unxz)"},
	{"SQLite format 3\x00", "an SQLite database", "export its rows as lines of JSON"},
	{"%PDF-", "a PDF document", "convert the file to text"},
	{"\xff\xfe\x00\x00", "text in UTF-32", utf8},
	{"\x00\x00\xfe\xff", "text in UTF-32", utf8},
	{"\xff\xfe", "text in UTF-16", utf8},
	{"\xfe\xff", "text in UTF-16", utf8},
}

const utf8 = "convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8)"

// Foreign returns an error if head, the first bytes of a file, shows that the file is not text in UTF-8. The error
// names the type of the file and a remedy. Foreign returns nil if the file may be text in UTF-8. Text in UTF-16
// without a byte order mark is recognized by its zero bytes.
func Foreign(head []byte) error {
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.begin)) {
			return fmt.Errorf("%s: %s", k.name, k.remedy)
		}
	}
	if len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) &&
		(head[1] == 0) == (head[3] == 0) {
		return fmt.Errorf("text in UTF-16: %s", utf8)
	}
	if len(head) > 0 && head[0] == 0 {
		return errors.New("the file begins with a zero byte, so it is not text")
	}
	return nil
}

package purgefile

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// LeastText is the minimum length in bytes of a purged text that is recognised in any document. A shorter text is
// recognised only in the document that had it.
const LeastText = 32

// KeySize is the number of bytes of the secret key with which texts are hashed.
const KeySize = 32

// Texts recognises purged texts by their hashes. It does not contain the texts.
type Texts struct {
	key  [KeySize]byte
	sums map[digest]bool
}

// NewTexts returns an empty Texts whose hashes are made with the given key.
func NewTexts(key [KeySize]byte) *Texts { return &Texts{key, map[digest]bool{}} }

// Sum returns the hash by which a text is recognised in the document whose log key is key. Only the hash of a text
// shorter than LeastText depends on key.
func (t *Texts) Sum(key, text string) [16]byte {
	text = strings.TrimSpace(text)
	h := hmac.New(sha256.New, t.key[:])
	if len(text) < LeastText {
		h.Write([]byte(key))
		h.Write([]byte{0})
	}
	h.Write([]byte(text))
	return [16]byte(h.Sum(nil)[:16])
}

// Has reports whether a text was purged. key is the log key of the document that has the text now. The empty text
// never counts as purged.
func (t *Texts) Has(key, text string) bool {
	return t != nil && len(t.sums) > 0 && strings.TrimSpace(text) != "" && t.sums[t.Sum(key, text)]
}

// Add adds a hash that Sum returned, and reports whether the hash is new.
func (t *Texts) Add(sum [16]byte) bool {
	if t.sums[sum] {
		return false
	}
	t.sums[sum] = true
	return true
}

// AddAll adds all hashes in list, and reports whether at least one of them is new.
func (t *Texts) AddAll(list *Texts) (added bool) {
	for sum := range list.sums {
		added = t.Add(sum) || added
	}
	return added
}

// Empty returns an empty Texts with the same key.
func (t *Texts) Empty() *Texts { return NewTexts(t.key) }

// Remove removes the hash of a text, and reports whether the hash was in t.
func (t *Texts) Remove(key, text string) bool {
	sum := digest(t.Sum(key, text))
	if !t.sums[sum] {
		return false
	}
	delete(t.sums, sum)
	return true
}

// Len returns the number of hashes.
func (t *Texts) Len() int { return len(t.sums) }

// TextsFile is the file wal/purged-texts of one store, the hashes of purged texts.
type TextsFile struct {
	fs   vfs.FS
	path string
}

// NewTextsFile returns the file wal/purged-texts of the store in the folder dir.
func NewTextsFile(fsys vfs.FS, dir string) *TextsFile {
	return &TextsFile{fsys, filepath.Join(dir, "wal", TextsName)}
}

// Path returns the path of the file.
func (f *TextsFile) Path() string { return f.path }

// Read reads the file. t is nil if the file does not exist, or if its key is damaged. damaged is the number of lines
// whose checksum does not match, and first is the number of the first such line.
func (f *TextsFile) Read() (t *Texts, damaged, first int, err error) {
	b, err := vfs.ReadFile(f.fs, f.path, most)
	if notThere(err) {
		return nil, 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, err
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if !parseText(line, &t) {
			if damaged++; first == 0 {
				first = n
			}
		}
	}
	return t, damaged, first, nil
}

// parseText parses a line of the file and adds its hash to t; the first line, with the key, creates t. It returns
// false if the line is invalid, or if its checksum does not match.
func parseText(line []byte, t **Texts) bool {
	rest, ok := summed(line)
	what, digits, found := bytes.Cut(rest, []byte(" "))
	if !ok || !found {
		return false
	}
	b, err := hex.DecodeString(string(digits))
	switch {
	case err != nil:
	case string(what) == "key" && len(b) == KeySize && *t == nil:
		*t = NewTexts([KeySize]byte(b))
		return true
	case string(what) == "text" && len(b) == len(digest{}) && *t != nil:
		(*t).sums[digest(b)] = true
		return true
	}
	return false
}

// Write writes the whole file, through a temporary file.
func (f *TextsFile) Write(t *Texts, temp string, perm fs.FileMode) error {
	b := appendSummed(nil, fmt.Appendf(nil, "key %x", t.key))
	sums := make([]digest, 0, len(t.sums))
	for sum := range t.sums {
		sums = append(sums, sum)
	}
	slices.SortFunc(sums, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	for _, sum := range sums {
		b = appendSummed(b, fmt.Appendf(nil, "text %x", sum[:]))
	}
	return vfs.WriteDurable(f.fs, temp, f.path, b, perm)
}

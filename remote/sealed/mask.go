package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/varve-db/varve/wal/past"
)

// KeySize is the size in bytes of a chain key, the secret with which a sealed copy masks the chain hashes of its
// marks.
const KeySize = 32

// chain masks the chain hashes of marks, so that the place does not learn them, and encrypts the names of machines.
// Both use the chain key.
type chain struct {
	key    [KeySize]byte
	block  cipher.Block
	names  cipher.AEAD
	random io.Reader
}

func newChain(key [KeySize]byte, random io.Reader) (*chain, error) {
	marks := sha256.Sum256(append([]byte("varve marks\n"), key[:]...))
	block, err := aes.NewCipher(marks[:])
	if err != nil {
		return nil, err
	}
	named := sha256.Sum256(append([]byte("varve machines\n"), key[:]...))
	other, err := aes.NewCipher(named[:])
	if err != nil {
		return nil, err
	}
	names, err := cipher.NewGCM(other)
	return &chain{key: key, block: block, names: names, random: random}, err
}

// commitment returns the hash of the chain key. Each signed statement contains this hash.
func (c *chain) commitment() [32]byte {
	return sha256.Sum256(append([]byte("varve chain key\n"), c.key[:]...))
}

const rounds = 10

// round is the round function of the Feistel network with which mask changes a hash. i is the number of the round.
func (c *chain) round(i int, position uint64, half uint32) uint32 {
	var b [aes.BlockSize]byte
	b[0] = byte(i)
	binary.LittleEndian.PutUint64(b[4:], position)
	binary.LittleEndian.PutUint32(b[12:], half)
	c.block.Encrypt(b[:], b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// mask returns the mark m with a masked chain hash. If c is nil or m is the zero mark, mask returns m unchanged.
func (c *chain) mask(m past.Mark) past.Mark {
	if c == nil || m == (past.Mark{}) {
		return m
	}
	left, right := uint32(m.Sum>>32), uint32(m.Sum)
	for i := range rounds {
		left, right = right, left^c.round(i, m.LSN, right)
	}
	m.Sum = uint64(left)<<32 | uint64(right)
	return m
}

// unmask is the inverse of mask: it returns the mark m with its original chain hash.
func (c *chain) unmask(m past.Mark) past.Mark {
	if c == nil || m == (past.Mark{}) {
		return m
	}
	left, right := uint32(m.Sum>>32), uint32(m.Sum)
	for i := rounds - 1; i >= 0; i-- {
		left, right = right^c.round(i, m.LSN, left), left
	}
	m.Sum = uint64(left)<<32 | uint64(right)
	return m
}

const namePrefix = "sealed:"

// hide returns the name of a machine in encrypted form, as text. show decrypts it.
func (c *chain) hide(name string) (string, error) {
	nonce := make([]byte, c.names.NonceSize())
	if _, err := io.ReadFull(c.random, nonce); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return namePrefix + base64.RawURLEncoding.EncodeToString(c.names.Seal(nonce, nonce, []byte(name), nil)), nil
}

// errHidden reports that a name cannot be decrypted.
var errHidden = errors.New("the name of the machine cannot be decrypted")

// show returns the name of a machine that hide has encrypted.
func (c *chain) show(hidden string) (string, error) {
	text, ok := strings.CutPrefix(hidden, namePrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(b) < c.names.NonceSize() {
		return "", errHidden
	}
	n := c.names.NonceSize()
	name, err := c.names.Open(nil, b[:n], b[n:], nil)
	if err != nil {
		return "", errHidden
	}
	return string(name), nil
}

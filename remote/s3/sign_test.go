package s3

import (
	"crypto/sha256"
	"encoding/binary"
)

// sign changes the JSON of an object that pack has encoded, and returns the object with the new length and checksum.
func sign(object []byte, change func(text []byte) []byte) []byte {
	e, d := compressor()
	n := binary.LittleEndian.Uint32(object[12:])
	text, err := d.DecodeAll(object[packHead:packHead+n], nil)
	if err != nil {
		panic(err)
	}
	b := e.EncodeAll(change(text), append([]byte(nil), object[:packHead]...))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-packHead))
	b = append(b, object[packHead+n:len(object)-sha256.Size]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

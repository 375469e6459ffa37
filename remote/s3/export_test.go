package s3

// Small makes the head of a remote so small that a few pieces need data objects, lists and lists of lists.
func Small(r *Remote) *Remote {
	r.most = limits{inline: 6 << 10, entries: 6, kept: 2, lists: 3}
	return r
}

// Sign replaces the JSON of a head or a list by text and returns the object with a right checksum.
func Sign(object, text []byte) []byte {
	return sign(object, func([]byte) []byte { return text })
}

// Text returns the JSON of a head or a list.
func Text(object []byte) (text []byte) {
	sign(object, func(b []byte) []byte {
		text = b
		return b
	})
	return text
}

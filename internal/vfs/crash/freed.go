package crash

// KeepFreed starts recording the contents of blocks that files release: those of removed files, and those after the end
// of truncated files. Later boots continue the record. Blocks are never reused, and everything written is assumed to
// have reached the disk, synced or not: the worst case of what a reader of the device can find. A file that lost its
// last name before KeepFreed is not recorded, although a process may still have it open.
func (d *Disk) KeepFreed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keepsFreed = true
}

// Freed returns the contents that files have released since KeepFreed: one piece for each content that the blocks of a
// file may have.
func (d *Disk) Freed() []Piece {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Piece(nil), d.freed...)
}

// Piece is a content of blocks that a file has released.
type Piece struct {
	Name string // the last element of the file's last name
	Data []byte
}

// free records the contents of a file's blocks from an offset on.
func (d *Disk) free(node *inode, from int64) {
	if !d.keepsFreed || node.early || node.entries != nil {
		return
	}
	for _, c := range []*content{&node.cache, &node.disk} {
		size := int64(len(c.pages)) * pageSize
		if from >= size {
			continue
		}
		b := make([]byte, size-from)
		whole := content{pages: c.pages, size: size}
		whole.read(b, from)
		d.freed = append(d.freed, Piece{node.name, b})
	}
	for _, w := range node.pending {
		if end := w.off + int64(len(w.data)); len(w.data) > 0 && end > from {
			d.freed = append(d.freed, Piece{node.name, w.data[max(0, from-w.off):]})
		}
	}
}

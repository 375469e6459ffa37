package crash

const (
	pageSize   = 4096
	sectorSize = 512
	perPage    = pageSize / sectorSize
)

// page is a page of a file. A Disk may change the page in place only if the page has the Disk's generation and belongs
// to no durable content. In all other cases the page is copied first.
type page struct {
	owner *generation
	b     [pageSize]byte
}

type generation struct{ _ byte }

func (c *content) read(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for done := 0; done < len(p); {
		at := off + int64(done)
		i, o := int(at/pageSize), int(at%pageSize)
		n := min(len(p)-done, pageSize-o)
		if pg := c.page(i); pg != nil {
			copy(p[done:done+n], pg.b[o:])
		} else {
			clear(p[done : done+n])
		}
		done += n
	}
	return len(p)
}

func (c *content) page(i int) *page {
	if c != nil && i < len(c.pages) {
		return c.pages[i]
	}
	return nil
}

// writablePage returns page i for writing. If frozen shares the page, or the page is of another generation than gen,
// writablePage first replaces it by a copy. frozen may be nil.
func (c *content) writablePage(i int, gen *generation, frozen *content) *page {
	for len(c.pages) <= i {
		c.pages = append(c.pages, nil)
	}
	p := c.pages[i]
	switch {
	case p == nil:
		p = &page{owner: gen}
	case p.owner != gen || frozen.page(i) == p:
		p = &page{owner: gen, b: p.b}
	}
	c.pages[i] = p
	return p
}

// write copies p into the pages, from the offset off on; see writablePage for gen and frozen. It does not change the
// size, which the caller must set.
func (c *content) write(p []byte, off int64, gen *generation, frozen *content) {
	for len(p) > 0 {
		i, o := int(off/pageSize), int(off%pageSize)
		n := min(len(p), pageSize-o)
		copy(c.writablePage(i, gen, frozen).b[o:], p[:n])
		p, off = p[n:], off+int64(n)
	}
}

// cut removes all bytes from the offset size on, and returns the pages that were removed; see writablePage for gen and
// frozen. It does not change c.size.
func (c *content) cut(size int64, gen *generation, frozen *content) (dropped []*page) {
	keep := int((size + pageSize - 1) / pageSize)
	if keep < len(c.pages) {
		dropped = append(dropped, c.pages[keep:]...)
		clear(c.pages[keep:])
		c.pages = c.pages[:keep]
	}
	if o := int(size % pageSize); o != 0 && keep == len(c.pages) && c.pages[keep-1] != nil {
		clear(c.writablePage(keep-1, gen, frozen).b[o:])
	}
	return dropped
}

// sectors returns the numbers of the first and last sector of a range of bytes.
func sectors(off int64, n int) (first, last int) {
	return int(off / sectorSize), int((off + int64(n) - 1) / sectorSize)
}

// part returns the piece of a write of data at offset off that is in the given sector, and the offset of this
// piece in the file.
func part(data []byte, off int64, sector int) (piece []byte, pieceOff int64) {
	start, end := int64(sector)*sectorSize, int64(sector+1)*sectorSize
	from, to := max(start, off), min(end, off+int64(len(data)))
	return data[from-off : to-off], from
}

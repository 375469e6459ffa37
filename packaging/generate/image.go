package main

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"time"
)

// storeArchive is the name of an archive with the folder of the image's store. An image built from scratch
// contains no program that could create the folder, and a folder that a builder creates for a volume belongs to
// root.
const storeArchive = "store.tar"

// imageUser is the numeric id of the user who runs the program in the image, and of this user's group.
const imageUser = 65532

func (o *options) image(dir string) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: "store/", Mode: 0o700, Uid: imageUser, Gid: imageUser, ModTime: time.Unix(o.time, 0),
		Format: tar.FormatUSTAR,
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return o.write(filepath.Join(dir, storeArchive), b.Bytes())
}

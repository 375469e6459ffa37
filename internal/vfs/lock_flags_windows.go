package vfs

const lockFlags = 0

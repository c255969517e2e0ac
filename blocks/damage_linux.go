package blocks

import "syscall"

// unreadable are the errors with which disks and file systems answer for data that they cannot read. Besides EIO they
// are what the block layer makes of the disk's own status, and what file systems say of damage that they have found
// themselves.
var unreadable = []syscall.Errno{
	syscall.EIO,
	syscall.EUCLEAN,   // EFSCORRUPTED: the structures of the file system are damaged (ext4, XFS, btrfs)
	syscall.EBADMSG,   // EFSBADCRC: a checksum of the file system is wrong (ext4, XFS)
	syscall.ENODATA,   // the medium cannot be read
	syscall.EREMOTEIO, // the target of a command failed
	syscall.EILSEQ,    // the disk's or dm-integrity's own check of the data fails
	syscall.ENXIO,     // the device does not answer to its address any more
}

# SPDX-License-Identifier: GPL-2.0
# Takes the events of a CPU out of the ring buffer, by mmap, splice or read of its trace_pipe_raw, until a
# file is gone and the buffer is empty. Prints the number of events of each type, and how many were
# lost. Without modules, so that the binary of perl is enough. For x86-64 and arm64.
# Usage: perl raw.pl mmap|splice|read trace_pipe_raw file

my ($how, $raw, $file) = @ARGV;
my ($size, $lost, %count) = (4096, 0);
my ($mmap, $splice) = -e '/lib/ld-linux-aarch64.so.1' ? (222, 76) : (9, 275);

sysopen(my $in, $raw, 04000) or die "$raw: $!\n";	# O_NONBLOCK

# The events of a sub-buffer, from an offset on. Returns the offset behind them.
sub events {
	my ($page, $at) = @_;
	my $end = 16 + (unpack('x8 L', $page) & 0x3fffffff);

	$at ||= 16;
	while ($at < $end) {
		my ($head, $len) = unpack("x$at L L", $page);
		my $type = $head & 31;

		if ($type == 29) {
			last if !($head >> 5);
			$at += 4 + $len;
		} elsif ($type > 29) {
			$at += 8;
		} else {
			my $data = $at + ($type ? 4 : 8);

			$count{unpack("x$data S", $page)}++;
			$at += 4 + ($type ? 4 * $type : $len);
		}
	}
	return $end;
}

sub memory {
	my ($address, $len) = @_;

	return unpack("P$len", pack('Q', $address));
}

sub map_pages {
	my $prot_read = 1;
	my $map_shared = 1;
	my $meta = syscall($mmap, 0, $size, $prot_read, $map_shared, fileno($in), 0);

	die "mmap: $!\n" if $meta == -1;
	my (undef, undef, $sub, $nr) = unpack('L4', memory($meta, 16));
	my $data = syscall($mmap, 0, $sub * $nr, $prot_read, $map_shared, fileno($in), $sub);

	die "mmap: $!\n" if $data == -1;
	return ($meta, $data, $sub);
}

my ($meta, $data, $sub);
my ($id, $at) = (-1, 0);

($meta, $data, $sub) = map_pages() if $how eq 'mmap';
pipe(my $out, my $pipe) if $how eq 'splice';

# Returns whether there was something.
sub take {
	my $page = '';

	if ($how eq 'mmap') {
		ioctl($in, 0x5220, 0) or return 0;	# TRACE_MMAP_IOCTL_GET_READER
		my (undef, undef, undef, undef, $new_lost, $new) = unpack('L4 Q L', memory($meta, 32));
		my $before = $new == $id ? $at : 0;

		$lost += $new_lost if $new != $id;
		$id = $new;
		$at = events(memory($data + $id * $sub, $sub), $before);
		return $at > ($before || 16);
	}
	if ($how eq 'splice') {
		my $n = syscall($splice, fileno($in), 0, fileno($pipe), 0, $size, 0);

		if ($n > 0) {
			sysread($out, $page, $n) == $size or die "$n bytes by splice\n";
			events($page);
			return 1;
		}
		# It takes whole pages only.
		return 0 if -e $file;
	}
	return 0 if !sysread($in, $page, $size);
	events($page);
	return 1;
}

while (1) {
	my $last = !-e $file;

	next if take();
	last if $last;
	select(undef, undef, undef, .01);
}
print "$_ $count{$_}\n" for sort { $a <=> $b } keys %count;
print "lost $lost\n";

mod csv;
mod gzip;
mod packer;
mod render;
mod sort;
mod stable;
mod write;

mod chunk;

# Builds the command line and leaves everything that only building needs behind.
FROM node:26-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY api ./api
COPY bin ./bin
COPY client ./client
COPY config ./config
COPY importer ./importer
COPY shared ./shared
RUN npm run build && npm prune --omit=dev

FROM node:26-trixie-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER node
EXPOSE 3000
ENTRYPOINT ["node", "--single-threaded-gc", "/app/dist/bin/medref.js"]
CMD ["serve"]
